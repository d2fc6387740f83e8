"""The packages that an installation pins, as a bill of materials names them."""

from __future__ import annotations

from collections.abc import Iterator

from support.installed import ROOT


def pins() -> Iterator[str]:
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if "==" in line:
            name, _, version = line.split(" ")[0].partition("==")
            yield f"pkg:pypi/{name}@{version}"
