"""The small changes: a comparison turned round, a condition negated, a constant moved, a boolean operator exchanged."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Change = Callable[[ast.AST], None]

_COMPARED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One module with one change; `line` says where, `what` which."""

    module: str
    line: int
    what: str
    source: str


def mutants_of(module: str, text: str) -> Iterator[Mutant]:
    tree = ast.parse(text)
    for number, node in enumerate(ast.walk(tree)):
        for what, change in _changes(node):
            other = copy.deepcopy(tree)
            change(list(ast.walk(other))[number])
            line = getattr(node, "lineno", 0)
            yield Mutant(module=module, line=line, what=what, source=ast.unparse(ast.fix_missing_locations(other)))


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARED:
            other = _COMPARED[type(operator)]
            yield f"{type(operator).__name__} becomes {other.__name__}", _set("ops", [other()])
        case ast.BoolOp(op=operator):
            exchanged = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield f"{type(operator).__name__} becomes {type(exchanged).__name__}", _set("op", exchanged)
        case ast.If(test=test) | ast.IfExp(test=test):
            yield "the condition is negated", _set("test", ast.UnaryOp(op=ast.Not(), operand=test))
        case ast.Constant(value=bool(value)):
            yield f"{value} becomes {not value}", _set("value", not value)
        case ast.Constant(value=int(value)):
            yield f"{value} becomes {value + 1}", _set("value", value + 1)
        case ast.Return(value=ast.expr()):
            yield "nothing is returned", _set("value", ast.Constant(value=None))


def _set(field: str, value: object) -> Change:
    return lambda node: setattr(node, field, value)
