"""`python -m controlplane`: builds if need be, starts a control plane, prints how to reach it, stays until Ctrl-C."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from controlplane import binaries, build, cluster

CRDS = Path(__file__).resolve().parents[2] / "schemas" / "crds"


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    if (reason := binaries.why_absent()) is not None:
        print(reason, file=sys.stderr)
        return 1
    try:
        found = binaries.built() or build.build(say)
        started = time.monotonic()
        with cluster.running(found, [CRDS], say) as plane:
            say(f"ready after {time.monotonic() - started:.1f} s; RSS in MiB: {dict(plane.rss_mib)}")
            say(f"export KUBECONFIG={plane.kubeconfig}")
            say("Ctrl-C ends it")
            signal.pause()
    except build.BuildError as failed:
        print(failed, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
