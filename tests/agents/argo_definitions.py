"""Argo CD's own definitions, from its Go module, which is fetched once into the cache of the control plane."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from controlplane import binaries
from controlplane.build import BuildError, Say, go, once

MODULE = "github.com/argoproj/argo-cd/v3"
VERSION, SUM = "v3.2.0", "h1:m2eGAV+nXQGgzZbH5SyJD5laaPW27mzWXBrgisUHY/0="
FILES = ("application-crd.yaml", "applicationset-crd.yaml", "appproject-crd.yaml")


def fetched(say: Say) -> Path:
    """The folder of the definitions. Raises BuildError where the module cannot be had, or is another one."""
    folder = binaries.cache_root() / f"argo-cd-{VERSION}"
    with once(folder, FILES, say) as new:
        if new is not None:
            answer = json.loads(go(Path.cwd(), "mod", "download", "-json", f"{MODULE}@{VERSION}").stdout)
            if answer["Sum"] != SUM:
                raise BuildError(f"{MODULE}@{VERSION} is {answer['Sum']} and not {SUM}")
            for name in FILES:
                shutil.copy(Path(answer["Dir"], "manifests", "crds", name), new / name)
    return folder
