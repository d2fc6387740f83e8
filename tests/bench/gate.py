"""`python -m bench.gate KUBECONFIG create|start`: carries out the checks of one time, as the webhook or the loop does.

A program of its own that does nothing else, so that its memory can be measured.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from support.rendered_plans import plan, release

from reconcile.admission.judging import AdmissionJudge, JudgeConfig
from reconcile.admission.review import PLANS, AdmissionRequest
from reconcile.cli.run import GARBAGE
from reconcile.cluster.client import connect
from reconcile.cluster.kubeconfig import find_access
from reconcile.observe.facts import gather
from reconcile.observe.kept_fields import for_checks
from reconcile.observe.readings import Readings
from reconcile.observe.seldom import SeldomLists
from reconcile.observe.snapshot import judge
from reconcile.observe.source import DirectSource
from reconcile.preflight.check_context import check_context, checks_of
from reconcile.preflight.checking import run_checks
from reconcile.preflight.running_plan import SeldomLook
from reconcile.schemas import packaged_schemas
from renderer.assemble import open_template_set
from renderer.files.templates import read_templates
from renderer.model.check import CheckTime

_SECONDS = 30.0
"""What the API server waits for a webhook at most."""


def main(kubeconfig: str, when: str) -> int:
    """The answer's exit status: 0 if everything could be looked at."""
    gc.set_threshold(GARBAGE)
    cluster = connect(find_access({}, kubeconfig=kubeconfig), environ=os.environ, now=lambda: datetime.now(UTC))
    template_set, schemas = open_template_set(read_templates()), packaged_schemas()
    kinds = template_set.catalog.kinds
    source, readings = (
        DirectSource(cluster, kinds, for_checks),
        Readings(cluster, kinds, lambda: datetime.now(UTC), _nobody),
    )
    wanted = {**plan(), "metadata": {**plan()["metadata"], "uid": "made-up"}}
    if when == "create":
        config = JudgeConfig(
            source=source,
            pool=ThreadPoolExecutor(8),
            readings=readings,
            template_set=template_set,
            checks=checks_of(template_set.catalog),
            schemas=schemas,
            clock=time.monotonic,
            now=lambda: datetime.now(UTC),
        )
        request = AdmissionRequest(uid="u", operation="CREATE", resource=PLANS, name="up", plan=wanted, old={})
        judgement = AdmissionJudge(config).judge(request, _SECONDS)
        causes = judgement.causes
        late = [cause.message for cause in causes if "time" in cause.message]
        print(*late, sep="\n", file=sys.stderr)
        return 1 if late else 0
    context = check_context(
        template_set, schemas, datetime.now(UTC), plan=wanted, release=release(), objects=gather(source, wanted)
    )
    seldom = SeldomLists(cluster, kinds, time.monotonic, lambda group: None)
    checks = checks_of(template_set.catalog)
    lists = _Seldom(seldom, source)
    judge(lambda look: run_checks(checks, SeldomLook(look=look), context, (CheckTime.START,)), lists, readings)
    return 0


class _Seldom:
    """Lists as the loop has them for checks, and all else as it is."""

    def __init__(self, lists: SeldomLists, direct: DirectSource) -> None:
        self.list = lists.list
        self.get, self.held, self.note = direct.get, direct.held, direct.note


def _nobody(address: str, port: int) -> datetime | None:
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
