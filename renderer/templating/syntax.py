"""Puts counting into a template before it is compiled: what can repeat pays for its body each time, and what looks at
all of a value pays for its length.

What it calls has names that no template can spell.
"""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import TemplateSyntaxError, nodes
from jinja2.visitor import NodeTransformer

from renderer.templating.limits import CHARACTERS

SPEND, WEIGH, JOIN = "(spend)", "(weigh)", "(join)"
_REACHES_OTHERS = (nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)


def counted(template: nodes.Template) -> nodes.Template:
    """The same template, changed in place."""
    environment = template.environment
    _Counting().visit(template)
    if environment is not None:
        template.set_environment(environment)
    return template


def refusal(template: nodes.Template, *, alone: bool) -> TemplateSyntaxError | None:
    """Printed text can be taken hold of in two more ways; as text it would count as quoted whatever came to it.
    `alone`: a string of a declaration, which stands for itself."""
    if block := next(template.find_all((nodes.AssignBlock, nodes.FilterBlock)), None):
        return TemplateSyntaxError("a block cannot be set or filtered; use a macro", block.lineno)
    if alone and (other := next(template.find_all(_REACHES_OTHERS), None)):
        return TemplateSyntaxError("a string cannot include or import; use a template", other.lineno)
    return None


class _Counting(NodeTransformer):
    def visit_Template(self, node: nodes.Template) -> nodes.Node:
        return self._with_price(node)

    def visit_For(self, node: nodes.For) -> nodes.Node:
        if node.test is not None:
            price = _filter(SPEND, nodes.Const(_price([node.test])), node.lineno)
            node.test = nodes.And(price, node.test, lineno=node.lineno)
        return self._with_price(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        return self._with_price(node)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        return self._with_price(node)

    def visit_Block(self, node: nodes.Block) -> nodes.Node:
        return self._with_price(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filter(JOIN, nodes.List(node.nodes, lineno=node.lineno), node.lineno)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _weighed(node.expr)
        for operand in node.ops:
            operand.expr = _weighed(operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _weighed(node.node)
        return node

    def _with_price(self, node: nodes.Template | nodes.For | nodes.Macro | nodes.CallBlock | nodes.Block) -> nodes.Node:
        price = _filter(SPEND, nodes.Const(_price(node.body)), node.lineno)
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(price, lineno=node.lineno))
        return node


def _price(body: Sequence[nodes.Node]) -> int:
    """Of one run through it: its parts and its text."""
    parts = [part for node in body for part in (node, *node.find_all(nodes.Node))]
    text = sum(len(part.data) for part in parts if isinstance(part, nodes.TemplateData))
    text += sum(len(part.value) for part in parts if isinstance(part, nodes.Const) and isinstance(part.value, str))
    return len(parts) + text // CHARACTERS


def _weighed(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _filter(WEIGH, node, node.lineno)


def _filter(name: str, node: nodes.Expr, line: int) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=line)
