"""The manager's manifests as `upgradeplan install` gives them, for tests that need some of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from renderer.files.templates import read_templates
from renderer.install.formats import Installation
from renderer.install.install_values import Values
from renderer.install.prepare import prepare_installation
from renderer.model.ref import Body
from renderer.yaml_io import dump

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT = ("harvester-system", "harvester-upgrade-manager")
"""Namespace and name of the manager's ServiceAccount."""

VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


@cache
def by_default() -> Installation:
    return installation()


def installation(*values: Values) -> Installation:
    return prepare_installation(read_templates(), values, VERSION)


def objects_of(*names: str) -> Iterator[Body]:
    """The objects of these templates, with default values; of all of them if none is named."""
    for file in by_default().files:
        if not names or file.name in names:
            yield from file.objects


def text_of(*names: str) -> str:
    return "---\n".join(dump(body) for body in objects_of(*names))
