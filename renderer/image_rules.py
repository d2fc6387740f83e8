"""How a plan and its Version name images: the toolkit's repository and tag, the ISO image's address and checksum.

Asked of files only. A plan that a cluster runs is judged by what is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from renderer.documents import Inputs, Source
from renderer.errors import Problem
from renderer.image_names import is_repository, is_tag
from renderer.model.path import Path, look_up
from renderer.model.plan_api import PREFIX
from renderer.schema_messages import found

TOOLKIT_IMAGE = f"{PREFIX}upgrade-toolkit-image"

_CHECKSUM = re.compile(r"[0-9a-fA-F]{128}")
_ADDRESS = re.compile(r"https?://[^\s/]+(/\S*)?", re.IGNORECASE)


def toolkit_problems(plan: Source) -> Iterator[Problem]:
    """Of `spec.upgrade`, which becomes a tag with `-` for `+`, and of the annotation that names the repository."""
    tag, repository = ("spec", "upgrade"), ("metadata", "annotations", TOOLKIT_IMAGE)
    if (text := _text(plan, tag)) and not is_tag(text.replace("+", "-")):
        remedy = "write one such as v1.8.1: at most 128 letters, digits, '.', '_' and '-', a letter or digit first"
        yield plan.problem("InvalidValue", f"{found(text)} cannot be the tag of the toolkit image", tag, remedy=remedy)
    if (text := _text(plan, repository)) and not is_repository(text):
        message = f"{found(text)} cannot be the repository of the toolkit image"
        remedy = "write it without tag and digest, such as registry.example.com/rancher/harvester-upgrade-toolkit"
        yield plan.problem("InvalidValue", message, repository, remedy=remedy)


def version_warnings(inputs: Inputs) -> Iterator[Problem]:
    """Of the Version that the plan names: the import would fail, hours later. Harvester takes any text there."""
    wanted = _text(inputs.plan, ("spec", "version")) if inputs.plan else ""
    for source in inputs.objects:
        if source.body["kind"] == "Version" and wanted and look_up(source.body, ("metadata", "name")) == wanted:
            yield from _iso_problems(source)


def _iso_problems(version: Source) -> Iterator[Problem]:
    address, checksum = ("spec", "isoURL"), ("spec", "isoChecksum")
    if (text := _text(version, address)) and not _ADDRESS.fullmatch(text):
        remedy = "write the address of the ISO image, such as https://example.com/harvester.iso"
        yield version.problem("InvalidValue", f"{found(text)} is no http or https address", address, remedy=remedy)
    if (text := _text(version, checksum)) and not _CHECKSUM.fullmatch(text):
        message = f"{found(text)} is no SHA-512 sum, which has 128 hexadecimal digits; it has {len(text)} characters"
        remedy = "copy it from the .sha512 file beside the ISO image, or leave it out"
        yield version.problem("InvalidValue", message, checksum, remedy=remedy)


def _text(source: Source, path: Path) -> str:
    value: Any = look_up(source.body, path)
    return value if isinstance(value, str) else ""
