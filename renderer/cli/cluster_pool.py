"""Gives clusters to worker processes, and their answers back one after the other: none is kept here."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from renderer.cli.cluster_worker import ClusterWorker, WorkerSetup, become, begin, render_one
from renderer.clusters.rendered_cluster import RenderedCluster
from renderer.files.cluster_folders import ClusterFolder

_AT_A_TIME = 8
"""Clusters that are handed to a worker together: a message for each would cost more than it is worth."""


def rendered_clusters(
    worker: ClusterWorker, setup: WorkerSetup, clusters: Sequence[ClusterFolder], jobs: int
) -> Iterator[RenderedCluster]:
    """The clusters in their order. The first one is rendered here, so that workers that are forks of this process find
    every template compiled."""
    yield from map(worker.render, clusters[:1])
    worker.save()
    rest, processes = clusters[1:], min(jobs or _cpus(), -(-len(clusters[1:]) // _AT_A_TIME))
    if processes <= 1:
        yield from map(worker.render, rest)
        return
    become(worker)
    gc.freeze()
    with ProcessPoolExecutor(processes, initializer=begin, initargs=(setup,)) as pool:
        yield from pool.map(render_one, rest, chunksize=_AT_A_TIME)


def _cpus() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
