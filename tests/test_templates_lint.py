"""The packaged tree holds to its own rules, and no template can print what was not quoted.

Packaged files are not validated when they are loaded: here is the proof that they need not be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from support.rendered_plans import overlaid, render_made, templates, three_nodes

from renderer.catalog.load import load_catalog
from renderer.catalog.places import BUILT_IN_UPGRADE, INSTALL, INSTALL_VALUES, NAMES_FILE, RELEASES
from renderer.catalog.template_tree import Template
from renderer.context.scope import Scope
from renderer.errors import Problems
from renderer.model.document_type import (
    BUILT_IN_UPGRADE_STATES,
    CAUSES,
    CHECKS,
    DELIVERY_RULES,
    DIFF_RULES,
    KINDS,
    NODE_STATES,
    PHASE,
    REDACTION_RULES,
    RELEASE_NOTES,
    VALUES,
    DocumentType,
)
from renderer.templating import Templates
from renderer.validation import document_problems
from renderer.yaml_io import dump, parse

TREE = templates()
DECLARATIONS = [path for path in TREE if path.endswith(".yaml") and path != INSTALL_VALUES]
TEMPLATES = [path for path in TREE if path.endswith(".j2")]


def type_of(path: str) -> DocumentType:
    shared = {
        "_kinds": KINDS,
        "_diff": DIFF_RULES,
        "_node-states": NODE_STATES,
        "_redaction": REDACTION_RULES,
        "preflight": CHECKS,
        "diagnosis": CAUSES,
        "delivery": DELIVERY_RULES,
        "values.yaml": VALUES,
    }
    if path.startswith(f"{RELEASES}/"):
        return RELEASE_NOTES
    if path == BUILT_IN_UPGRADE:
        return BUILT_IN_UPGRADE_STATES
    return shared.get(path.partition("/")[0], PHASE)


@pytest.mark.parametrize("path", DECLARATIONS)
def test_a_packaged_declaration_fits_its_schema(path: str) -> None:
    (document,) = parse(TREE[path].text, path)
    assert [str(problem) for problem in document_problems(document, type_of(path))] == []


@pytest.mark.parametrize("path", TEMPLATES)
def test_a_packaged_template_can_be_compiled(path: str) -> None:
    Templates(TREE).check_syntax(path)


def test_the_tree_holds_declarations_and_templates_and_nothing_else() -> None:
    assert set(TREE) == {*DECLARATIONS, *TEMPLATES, INSTALL_VALUES}
    assert len([path for path in DECLARATIONS if type_of(path) is PHASE]) == 8
    assert all(TREE[path].packaged for path in TREE)


@pytest.mark.slow
def test_the_packaged_tree_holds_together_also_when_it_is_judged_as_an_overlay() -> None:
    judged = {path: Template(text=item.text, shown=path, packaged=False) for path, item in TREE.items()}
    numbers = [item.phase.number for item in load_catalog(judged, document_problems).phases]
    assert numbers == [10, 20, 30, 40, 50, 60, 70, 80]


@pytest.mark.parametrize("path", list(TREE))
def test_a_packaged_file_is_tidy(path: str) -> None:
    """A tab or a blank at a line's end is no business of a reviewer; wide lines are, but in a page, where a new line
    is a blank between words."""
    text = TREE[path].text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert re.search(r"[ \t]$|\t|\r", text, re.MULTILINE) is None
    assert path.endswith(".html.j2") or max(map(len, text.splitlines())) <= 180


IN_CODE = {
    "toolkitImage": "it is what the annotation upgrade-toolkit-image replaces",
    "toolkitTag": "it is what spec.upgrade replaces",
    "imageRegistry": "it is part of toolkit.image",
    "imagePullSecrets": "they are toolkit.pullSecrets, as a pod has them",
}


def test_every_value_is_used() -> None:
    values = parse(TREE["values.yaml"].text, "values.yaml")[0].value
    texts = [TREE[path].text for path in TREE if path != "values.yaml" and not path.startswith(f"{INSTALL}/")]
    used = {name for text in texts for name in re.findall(r"(?<!spec\.)values\.(?!yaml)(\w+)", text)}
    assert used.isdisjoint(IN_CODE)
    assert used | set(IN_CODE) == set(values) - {"apiVersion", "kind"}


def test_every_macro_file_is_imported_by_somebody() -> None:
    imported = {name for path in TREE for name in re.findall(r'import "([^"]+)"', TREE[path].text)}
    assert imported == {path for path in TREE if path.startswith("_macros/")}


# ------------------------------------------------------------------------------------------- what a template may print


def rendered(text: str, **context: Any) -> str:
    """What a template of this text prints; `_macros/m.j2` has a macro that prints its argument, quoted."""
    macros = "{% macro shown(x) -%}{{ x | quote }}{%- endmacro %}{% macro around() %}[{{ caller() }}]{% endmacro %}"
    files = {"t.j2": text, "_macros/m.j2": macros}
    tree = {path: Template(text=item, shown=path, packaged=False) for path, item in files.items()}
    return Templates(tree).render_text("t.j2", context)


def told(text: str, **context: Any) -> str:
    with pytest.raises(Problems) as caught:
        rendered(text, **context)
    (problem,) = caught.value.problems
    return str(problem)


USER = "x\n- y: &a [*b] # {{ 7 * 7 }}"
IMPORT = '{% import "_macros/m.j2" as m with context %}'


@pytest.mark.parametrize(
    "text",
    [
        "{{ user }}",
        "a: {{ user }}",
        'a: "{{ user }}"',
        "a: '{{ user }}'",
        "{{ user | upper }}",
        "{{ 'constant' }}",
        "{{ user ~ '' }}",
        "{{ user ~ (user | quote) }}",
        "{{ (user | quote) ~ user }}",
        "{{ (user | quote) + user }}",
        "{{ (user | quote) }}{{ user }}",
        "{{ [user | quote, user] | join }}",
        "{{ [user | quote] | join }}",
        "{{ (user | quote) | replace('x', user) }}",
        "{{ (user | quote) | trim }}",
        "{{ (user | quote)[1:-1] }}",
        "{{ (user | quote)[:] }}",
        "{{ (user | quote) | reverse }}",
        "{{ ('%s' | quote) % user }}",
        "{{ user | quote | first }}",
        IMPORT + "{{ m.shown(user) ~ user }}",
        IMPORT + "{{ m.shown(user) | replace('x', user) }}",
        IMPORT + "{{ m.shown(user) + user }}",
        IMPORT + "{{ m.shown('%s') % user }}",
        IMPORT + "{{ [m.shown(user), user] | join('\n') }}",
        IMPORT + "{% call m.around() %}{{ user }}{% endcall %}",
        "{% for item in [user] %}{{ item }}{% endfor %}",
        "{% with a = user %}{{ a }}{% endwith %}",
        "{{ [user] }}",
        "{{ {'a': user} }}",
        "{{ (user,) }}",
        "{{ scope }}",
        "{{ range }}",
    ],
)
def test_what_was_not_quoted_is_not_printed(text: str) -> None:
    scope = Scope("plan", {"a": USER})
    assert "without quoting; add `| quote`" in told(text, user=USER, scope=scope)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{% set a %}{{ user | quote }}{% endset %}{{ a }}", "a block cannot be set or filtered; use a macro"),
        ("{% filter upper %}{{ user | quote }}{% endfilter %}", "a block cannot be set or filtered; use a macro"),
        ("{% autoescape false %}{{ user }}{% endautoescape %}", "without quoting; add `| quote`"),
        ("{{ ('{}' | quote).format(user) }}", "access to attribute 'format' of 'Printable' object is unsafe"),
        ("{{ ('{}' | quote)['format'](user) }}", "access to attribute 'format' of 'Printable' object is unsafe"),
        ("{{ ('x' | quote).replace('x', user) }}", "access to attribute 'replace' of 'Printable' object is unsafe"),
        ("{{ user | safe }}", "no filter named 'safe'"),
        ("{{ user | tojson }}", "no filter named 'tojson'"),
        ("{{ user | e }}", "no filter named 'e'"),
        ("{{ user | format }}", "no filter named 'format'"),
        ("{{ user | quote | quote }}", "quotes a value twice"),
        ("{{ none }}", "prints a value that is not set"),
        ("{{ x.y }}", "'x' is undefined"),
    ],
)
def test_other_ways_around_quoting_are_closed(text: str, expected: str) -> None:
    assert expected in told(text, user=USER)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ user | quote }}", '"x\\n- y: &a [*b] # {{ 7 * 7 }}"'),
        (IMPORT + "{{ m.shown(user) }}", '"x\\n- y: &a [*b] # {{ 7 * 7 }}"'),
        (IMPORT + "{% call m.around() %}{{ 1 }}{{ 'a' | quote }}{% endcall %}", '[1"a"]'),
        ("{{ 1 }} {{ 2.5 }} {{ true }} {{ false }} {{ 3 // 2 }}", "1 2.5 true false 1"),
        ("{{ [user, none, 1, true] | quote }}", '["x\\n- y: &a [*b] # {{ 7 * 7 }}", null, 1, true]'),
        ("{{ scope | quote }}", '{"items": "own", "a": [1]}'),
        ("{{ '<&>\"\\'\\\\' | quote }}", '"<&>\\"\'\\\\"'),
        ("{{ '\u2028\u2029\u0085\ufeff\x7f' | quote }}", '"\\u2028\\u2029\\u0085\\ufeff\\u007f"'),
        ("{{ '\U0001f680é' | quote }}", '"\U0001f680é"'),
        ("{{ none | default('a', true) | quote }}", '"a"'),
    ],
)
def test_what_was_quoted_is_printed_as_json(text: str, expected: str) -> None:
    assert rendered(text, user=USER, scope=Scope("plan", {"items": "own", "a": [1]})) == expected


@pytest.mark.parametrize("path", [path for path in TEMPLATES if path != NAMES_FILE])
def test_every_mark_that_prints_quotes_calls_a_macro_or_prints_a_number(path: str) -> None:
    """So that it is seen when a template is read, and not only when it meets its first plan. Words for people are not
    quoted, and a page is escaped as HTML."""
    if path.endswith(".html.j2"):
        return
    values = r"values\.(isoImportRetries|backoffLimits\.\w+)|backoffLimit|(unit|part)\.timeout"
    numbers = rf"{values}|\[full, 2\] \| min|concurrency"
    for mark in re.findall(r"\{\{-?\s*((?:\"[^\"]*\"|.)*?)\s*-?\}\}", TREE[path].text):
        assert re.search(rf"\| quote$|^(?:\w+\.)?\w+\(.*\)$|^(?:{numbers})$", mark), mark


# ------------------------------------------------------------------------------------------------ names and the sandbox


def test_a_key_is_preferred_to_a_method() -> None:
    scope = Scope("d", {"items": "i", "keys": {"values": "v"}, "name": "n"})
    text = "{{ d.items | quote }} {{ d.keys['values'] | quote }} {{ d['name'] | quote }}"
    assert rendered(text, d=scope) == '"i" "v" "n"'
    assert rendered("{{ d.items | quote }}", d={"items": "i"}) == '"i"'
    assert "d has no 'values'" in told("{{ d.values | quote }}", d=scope)
    assert "d has no 'get'" in told("{{ d.get('x') | quote }}", d=scope)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n\na: {{ release.harvster | quote }}", "t.j2:3: release has no 'harvster'; did you mean 'harvester'?"),
        ("{{ release['os '] | quote }}", "t.j2:1: release has no 'os '; did you mean 'os'?"),
        ("{{ release.zzz | quote }}", "t.j2:1: release has no 'zzz'\n"),
        ("{{ release.deep.chrat | quote }}", "t.j2:1: release.deep has no 'chrat'; did you mean 'chart'?"),
        ("{{ relaese | quote }}", "t.j2:1: 'relaese' is undefined"),
        ("{{ relaese.harvester | quote }}", "t.j2:1: 'relaese' is undefined"),
        ("{% if release.harvster %}{% endif %}", "t.j2:1: release has no 'harvster'; did you mean 'harvester'?"),
        ("{% for x in release.harvster %}{% endfor %}", "t.j2:1: release has no 'harvster'"),
        ("{{ [release.harvster] | quote }}", "t.j2:1: release has no 'harvster'"),
        ("{{ {'a': release.harvster} | quote }}", "t.j2:1: release has no 'harvster'"),
        ("{{ release.harvster }}", "t.j2:1: release has no 'harvster'"),
        ("{{ release.harvster ~ 'x' }}", "t.j2:1: release has no 'harvster'"),
        ("{{ release.harvster == 'x' }}", "t.j2:1: release has no 'harvster'"),
        ("{{ undefined_function() }}", "t.j2:1: 'undefined_function' is undefined"),
    ],
)
def test_an_unknown_name_is_told_with_the_one_that_was_meant(text: str, expected: str) -> None:
    found = told(text, release=Scope("release", {"harvester": "v", "os": "o", "deep": {"chart": "c"}}))
    assert expected in f"{found}\n"
    assert "lists the names that a template can use" in found


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ name.__globals__ }}",
        "{{ name.__code__ }}",
        "{{ self.__init__.__globals__ }}",
        "{{ m.append(1) }}",
        "{{ d.update({'a': 1}) }}",
        "{{ cycler.__init__ }}",
        "{{ lipsum() }}",
        "{{ joiner() }}",
        "{{ namespace(a=1).a }}",
        "{{ '{0.__class__}'.format(1) | quote }}",
        "{{ range(10000000) | list | quote }}",
        "{{ x.mro() }}",
    ],
)
def test_the_sandbox_has_no_way_out(text: str) -> None:
    def name() -> str:
        return ""

    assert told(text, name=name, m=[], d={}, x=str)


def test_a_problem_names_the_template_that_raised_it() -> None:
    """The macro's file and line, not those of whoever imported it."""
    files = {
        "a.j2": '\n{% import "_macros/b.j2" as b with context %}\n{{ b.x() }}',
        "_macros/b.j2": "{% macro x() %}\n\n{{ plan.nmae | quote }}{% endmacro %}",
    }
    tree = {path: Template(text=text, shown=f"shown/{path}", packaged=False) for path, text in files.items()}
    with pytest.raises(Problems, match=r"^shown/_macros/b.j2:3: plan has no 'nmae'; did you mean 'name'\?"):
        Templates(tree).render_text("a.j2", {"plan": Scope("plan", {"name": "n"})})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n{% if x %}", "t.j2:2: unexpected end of template"),
        ("\n{{ x | nope }}", "t.j2:2: no filter named 'nope'"),
        ("{{ fail('no, ' ~ 1) }}", "t.j2:1: no, 1"),
        ("\n{{ 1 / 0 }}", "t.j2:2: divides by zero"),
        ("{{ 'a' + 1 }}", "t.j2:1: TypeError: "),
        ('{% import "m.j2" as m %}', "t.j2:1: template 'm.j2'"),
        ('{% include "../../etc/passwd" %}', "t.j2:1: template '../../etc/passwd'"),
    ],
)
def test_whatever_goes_wrong_is_a_problem_with_a_line(text: str, expected: str) -> None:
    assert told(text).startswith(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("plan.spce", "plan has no 'spce'; did you mean 'spec'?"),
        ("plan.spec.forse", "plan.spec has no 'forse'; did you mean 'force'?"),
        ("1 +", "unexpected ')'"),
    ],
)
def test_an_expression_of_a_declaration_is_judged_alike(expr: str, expected: str) -> None:
    phase = PHASE.document(
        {
            "name": "Wait",
            "description": "d",
            "status": {"active": "Waiting", "completed": "Waited"},
            "deletion": "free",
            "skipWhen": [{"expr": expr, "reason": "b"}],
        }
    )
    with pytest.raises(Problems) as caught:
        render_made(*three_nodes(), tree=overlaid({"90-wait/phase.yaml": dump(phase)}))
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"overlay/90-wait/phase.yaml:10: {expected} (in `{expr}`)\n    remedy: ")


def test_a_filter_that_is_ours() -> None:
    context: Mapping[str, Any] = {"a": ["x:1", "r/keep:2", "y:1"], "b": ["y:1"], "c": ["keep"]}
    assert rendered("{{ a | without(b, c) | quote }}", **context) == '["x:1"]'
