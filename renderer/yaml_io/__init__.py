"""The one door to PyYAML. Each of its rules is a case of the tests. It must not know what a document means."""

from __future__ import annotations

from renderer.yaml_io.compose import Allowance
from renderer.yaml_io.read import Document, each_document, parse
from renderer.yaml_io.write import dump

__all__ = ["Allowance", "Document", "dump", "each_document", "parse"]
