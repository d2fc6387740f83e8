"""The list that is packaged, for what leaves the program before, or without, a template tree."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from renderer.redaction.listed import RedactionRules, redaction_rules
from renderer.redaction.redactor import Redactor
from renderer.resources import packaged
from renderer.yaml_io import parse

LIST = "_redaction/rules.yaml"
"""Its place in the template tree."""


@lru_cache
def packaged_list() -> Mapping[str, Any]:
    """Read once, when something is shown for the first time."""
    text = packaged("templates").joinpath(LIST).read_text(encoding="utf-8")
    (document,) = parse(text, f"templates/{LIST}")
    found: Mapping[str, Any] = document.value
    return found


@lru_cache
def packaged_rules() -> RedactionRules:
    return redaction_rules([packaged_list()])


@lru_cache
def packaged_redactor() -> Redactor:
    """Of messages: its marks have no numbers, and so it keeps nothing that would change what it answers."""
    return Redactor(packaged_rules())
