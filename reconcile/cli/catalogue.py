"""The checks of a template tree, for the commands that carry them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from renderer.cli.answer import redact_by, warn

if TYPE_CHECKING:
    from renderer.assemble import TemplateSet
    from renderer.catalog.template_tree import TemplateTree


def template_set_in(tree: TemplateTree) -> TemplateSet:
    """The templates of a tree that was read. Raises `Problems`."""
    from renderer.assemble import open_template_set
    from renderer.files.code import CodeCache

    code = CodeCache()
    template_set = open_template_set(tree, code=code)
    redact_by(template_set.catalog.redaction)
    warn(template_set.catalog.warnings)
    code.save()
    return template_set
