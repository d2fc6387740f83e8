"""The inputs that a phase or a step may require, and how to give each of them. Phases provide late inputs."""

from __future__ import annotations

INPUTS: dict[str, str] = {
    "nodes": "give the cluster's Node objects, as `kubectl get nodes -o yaml` prints them",
    "version": "give the Version object that spec.version names, from namespace harvester-system",
    "previousVersion": "give the Harvester Setting server-version",
    "repoTag": "set spec.upgrade, or give the Harvester Setting server-version",
    "releaseMetadata": "give the release's harvester-release.yaml with --release",
    "toolkitTag": "set spec.upgrade, or give the release's harvester-release.yaml with --release",
    "imageLists": "give the release as an ISO file, or the lists in a facts document",
}
"""Name to remedy: how to give the input."""
