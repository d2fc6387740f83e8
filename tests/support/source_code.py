"""Our own code for tests that read it, parsed and walked once a process."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence

from support.rendered_plans import ROOT

PACKAGES = ("renderer", "reconcile")


@functools.cache
def modules() -> Mapping[str, ast.Module]:
    """Every module of ours by its file."""
    return _parsed(*PACKAGES)


@functools.cache
def modules_of_tests() -> Mapping[str, ast.Module]:
    return _parsed("tests")


def _parsed(*folders: str) -> Mapping[str, ast.Module]:
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in files}


@functools.cache
def nodes(tree: ast.Module) -> Sequence[ast.AST]:
    """As `ast.walk` finds them."""
    return tuple(ast.walk(tree))
