"""The command line: reads arguments, asks the other rooms, prints the answer as text or JSON.

One module a command, imported when that command runs. What a command finds out is decided elsewhere; here it is put
into one model, and the model into words. `click` is imported nowhere else in the renderer.
"""

from __future__ import annotations

import gc
import sys

INTERRUPTED = 130
"""The exit status that shells show for a program that Ctrl-C ended (128 + SIGINT)."""


def main() -> int:
    """`upgradeplan`, and `kubectl upgradeplan`: answers the exit status."""
    try:
        from renderer.cli.program import run  # people also press Ctrl-C while this is imported

        return run(sys.argv)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    finally:
        gc.freeze()  # or Python looks through all objects for garbage once more, a fifth of a short run, and then exits


def complete_for_kubectl() -> int:
    """`kubectl_complete-upgradeplan`: kubectl calls it with the words so far, the last one unfinished."""
    from renderer.cli.completion import kubectl_candidates

    sys.stdout.write(kubectl_candidates(sys.argv[1:]))
    return 0
