"""Finds every reason that the code and the templates can give: of a problem, a condition, an event, a node's state.

Reads the code with `ast`: an argument called `reason` is followed back to the words that it can be. What cannot be
followed is reported, so that no reason escapes by being computed.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.source_code import nodes

REASON = re.compile(r"[A-Z][A-Za-z0-9]+")
SENTENCES = ("reconcile/probes/", "reconcile/cluster/protocol.py")
"""Rooms in which a parameter `reason` is a sentence and no word: what a probe found, what an authorizer said."""

_PARAMETER = "reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A reason and the place that gives it."""

    reason: str
    place: str


@dataclass(slots=True, kw_only=True)
class Found:
    given: list[Given] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)


def in_templates(documents: Mapping[str, Any]) -> list[Given]:
    """The reasons of events and holds that phases declare. `documents` is parsed YAML by file name."""
    return [
        Given(reason=value["reason"], place=file)
        for file, document in documents.items()
        for value in _mappings(document)
        if "message" in value and REASON.fullmatch(str(value.get("reason", "")))
    ]


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for item in value.values():
            yield from _mappings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _mappings(item)


def in_code(modules: Mapping[str, ast.Module]) -> Found:
    """`modules` by file name."""
    return _Reader(modules).read()


class _Reader:
    def __init__(self, modules: Mapping[str, ast.Module]) -> None:
        self._modules = modules
        self._found = Found()
        self._followed: set[tuple[ast.expr, int | None]] = set()
        self._positions: dict[str, set[int]] = defaultdict(set)
        """Of each function or class with a parameter `reason`, by bare name: where it stands among the others."""
        self._functions: dict[str, list[ast.FunctionDef]] = defaultdict(list)
        self._constants: dict[str, list[tuple[ast.expr, int | None]]] = defaultdict(list)
        for file, tree in modules.items():
            self._learn(file, tree)

    def read(self) -> Found:
        roots = _roots(self._modules)
        for file, tree in self._modules.items():
            for scope, call in _calls(tree):
                self._followed.clear()
                for argument in self._reasons(file, call):
                    self._follow(argument, scope, file)
            self._found.given += _named_by_their_class(file, tree, roots)
        return self._found

    def _learn(self, file: str, tree: ast.Module) -> None:
        for statement in tree.body:
            for name, value, index in _bound(statement):
                self._constants[_scoped(file, name)].append((value, index))
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef):
                self._functions[_scoped(file, node.name)].append(node)
                names = _parameters(node)
            elif isinstance(node, ast.ClassDef):
                names = _fields(node)
            else:
                continue
            if _PARAMETER in names and not file.startswith(SENTENCES):
                self._positions[_scoped(file, node.name)].add(names.index(_PARAMETER))

    def _reasons(self, file: str, call: ast.Call) -> Iterator[ast.expr]:
        """The arguments of a call that are its reason."""
        positions = self._positions.get(_scoped(file, _bare(call.func)), set())
        if positions:
            yield from (keyword.value for keyword in call.keywords if keyword.arg == _PARAMETER)
        for position in positions:
            if position < len(call.args) and not isinstance(call.args[position], ast.Starred):
                yield call.args[position]

    def _follow(self, value: ast.expr, scope: ast.AST | None, file: str, index: int | None = None) -> None:
        """Notes every word that the expression can be. `index`: of a tuple, the item that is meant."""
        if (value, index) in self._followed:
            return
        self._followed.add((value, index))
        match value:
            case ast.Constant(value=str(word)):
                if REASON.fullmatch(word):
                    self._found.given.append(Given(reason=word, place=f"{file}:{value.lineno}"))
            case ast.Constant() | ast.Attribute() | ast.Call(func=ast.Attribute()):
                pass  # nothing, or what another value has already, such as an object's own reason
            case ast.JoinedStr(values=parts) if any(" " in str(p.value) for p in parts if isinstance(p, ast.Constant)):
                pass  # a sentence
            case ast.Tuple(elts=items) if index is not None and index < len(items):
                self._follow(items[index], scope, file)
            case ast.IfExp(body=one, orelse=other):
                self._follow_all((one, other), scope, file, index)
            case ast.BoolOp(values=values) | ast.Subscript(value=ast.Dict(values=values)):
                self._follow_all(values, scope, file, index)
            case ast.Subscript(value=ast.Name(id=name)) if tables := self._constants.get(_scoped(file, name)):
                for table in (table for table, _ in tables if isinstance(table, ast.Dict)):
                    self._follow_all(table.values, scope, file, index)
            case ast.Call(func=ast.Name(id=name)) if called := self._functions.get(_scoped(file, name)):
                for function in called:
                    self._follow_all(_returned(function), function, file, index)
            case ast.Name(id=name):
                self._follow_name(name, scope, file, index)
            case ast.Subscript() | ast.Call(func=ast.Name(id="str")):
                pass  # read from a document or an object
            case _:
                self._found.unclear.append(f"{file}: {ast.unparse(value)}")

    def _follow_all(self, values: Iterable[ast.expr], scope: ast.AST | None, file: str, index: int | None) -> None:
        for value in values:
            self._follow(value, scope, file, index)

    def _follow_name(self, name: str, scope: ast.AST | None, file: str, index: int | None) -> None:
        if isinstance(scope, ast.FunctionDef) and name in _parameters(scope):
            if name != _PARAMETER:
                self._found.unclear.append(f"{file}: {name}, a parameter of {scope.name}")
            return
        local = [(v, at) for node in ast.walk(scope) for bound, v, at in _bound(node) if bound == name] if scope else []
        known = local or self._constants.get(_scoped(file, name), [])
        if not known:
            self._found.unclear.append(f"{file}: {name}")
        for value, at in known:
            self._follow(value, scope, file, index if at is None else at)


def _calls(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | None, ast.Call]]:
    """Every call with the innermost function around it."""

    def below(node: ast.AST, scope: ast.FunctionDef | None) -> Iterator[tuple[ast.FunctionDef | None, ast.Call]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                yield scope, child
            yield from below(child, child if isinstance(child, ast.FunctionDef) else scope)

    return below(tree, None)


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr, int | None]]:
    """The names that a statement or an expression binds, to what; with the item where it is a tuple's."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            | ast.NamedExpr(target=ast.Name(id=name), value=value)
        ):
            yield name, value, None
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            yield from ((target.id, value, at) for at, target in enumerate(targets) if isinstance(target, ast.Name))


def _returned(function: ast.FunctionDef) -> list[ast.expr]:
    return [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]


def _parameters(function: ast.FunctionDef) -> list[str]:
    found = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return [argument.arg for argument in found if argument.arg not in ("self", "cls")]


def _fields(node: ast.ClassDef) -> list[str]:
    return [s.target.id for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]


def _scoped(file: str, name: str) -> str:
    """A private name belongs to its file, any other one to all."""
    return f"{file} {name}" if name.startswith("_") else name


def _named_by_their_class(file: str, tree: ast.Module, roots: Collection[str]) -> Iterator[Given]:
    """Exceptions whose reason is the name of their class."""
    for node in nodes(tree):
        if isinstance(node, ast.ClassDef) and any(base in roots for base in map(_bare, node.bases)):
            yield Given(reason=node.name, place=f"{file}:{node.lineno}")


def _roots(modules: Mapping[str, ast.Module]) -> set[str]:
    """The classes that give their own name as a reason, and all below them."""
    classes = [node for tree in modules.values() for node in nodes(tree) if isinstance(node, ast.ClassDef)]
    known = {node.name for node in classes if "reason = type(self).__name__" in ast.unparse(node)}
    while more := {n.name for n in classes if n.name not in known and known & set(map(_bare, n.bases))}:
        known |= more
    return known


def _bare(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
