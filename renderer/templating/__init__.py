"""The one door to Jinja: what templates may do, and how a template is rendered."""

from renderer.templating.compiled import Templates, has_marks

__all__ = ["Templates", "has_marks"]
