"""Manifests as text: what every layout has in common.

LF, one object a document; the same plan gives the same bytes.
"""

from __future__ import annotations

from renderer.model.rendered import Manifest
from renderer.render.manifest import REVIEW
from renderer.yaml_io import dump

Tree = dict[str, str]
"""Path below the plan's folder to text."""


def manifest_text(manifests: list[Manifest]) -> str:
    """The text of one file: its objects as documents, after a note if only the loop may apply them."""
    return _note(manifests[0]) + "---\n".join(dump(manifest.body) for manifest in manifests)


def _note(manifest: Manifest) -> str:
    if not manifest.file.startswith(REVIEW):
        return ""
    reasons = [
        "its fields are borrowed from somebody else's object and sent as a merge patch" if manifest.borrowed else "",
        "it holds values that are known at run time only" if manifest.run_time else "",
    ]
    why = "; ".join(reason for reason in reasons if reason) or "it is applied when its step starts"
    return f"# Applied by the upgrade loop only: {why}.\n"
