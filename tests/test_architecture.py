"""Who may import whom, which library has its door where, and what no module may say: read from the code itself.

Each rule is a table. A finding names the file, the line and what stands there.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.rendered_plans import ROOT, templates
from support.source_code import PACKAGES, modules, modules_of_tests, nodes

from renderer.yaml_io import parse

pytestmark = pytest.mark.lane("our own code")

ROOMS: Mapping[str, Sequence[str]] = {
    "renderer": (
        "frozen",
        "errors difference_groups",
        "markdown",
        "pattern_paths",
        "model names image_names versions digest resources quantity suggest patterns columns",
        "yaml_io",
        "redaction",
        "validation deprecated",
        "namespaces",
        "source_document",
        "plan_choice",
        "documents",
        "plan_rules cluster_rules",
        "input_rules",
        "new_plan",
        "catalog",
        "describe context templating",
        "manifest_rules built_in text_rules",
        "render",
        "layout",
        "delivery",
        "clusters",
        "compare assemble files install",
        "compare_trees",
        "cli",
    ),
    "reconcile": (
        "objects values",
        "schemas",
        "diff probes",
        "preflight",
        "borrow",
        "status",
        "decide",
        "cluster",
        "observe act toolkit",
        "diagnosis",
        "admission loop gate",
        "metrics",
        "report",
        "report_page",
        "pod_logs",
        "install",
        "simulator",
        "cli",
    ),
}
"""Rooms of each package from left to right, those of one step side by side. A module imports from its own room and from
its left."""

DOORS: Mapping[str, Sequence[str]] = {
    "aiohttp": ("reconcile/admission/webhook_server.py",),
    "click": ("renderer/cli/*", "reconcile/cli/*"),
    "cryptography": ("reconcile/admission/certificates.py",),
    "deepdiff": ("reconcile/diff/list_changes.py",),
    "jinja2": ("renderer/templating/*",),
    "jsonschema": ("renderer/validation/validate.py",),
    "kubernetes": ("reconcile/cluster/transport.py",),
    "markupsafe": ("renderer/templating/environment.py",),
    "msgspec": ("reconcile/cluster/kept_page.py",),
    "prometheus_client": ("reconcile/metrics/exposition.py",),
    "pycdlib": ("renderer/files/iso.py",),
    "rich": ("renderer/cli/*", "reconcile/cli/*"),
    "urllib3": ("reconcile/cluster/transport.py",),
    "yaml": ("renderer/yaml_io/*",),
}
"""Every library that is no part of Python, and the modules that may import it. All but click and rich have one."""

EDGES = ("renderer/files/*", "renderer/cli/*", "reconcile/cluster/*", "reconcile/cli/*")
OUTSIDE: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("http", "socket", "ssl", "subprocess", "signal", "secrets", "tempfile", "urllib", "os"), EDGES),
    **dict.fromkeys(("time", "random"), EDGES),
}
"""What reaches for time, chance, network, disk or the environment, and where that is allowed."""

OUTSIDE_TOO: Mapping[tuple[str, str], str] = {
    ("reconcile/loop/endpoint_server.py", "http"): "the manager's own health and metrics endpoints",
    ("reconcile/admission/tls.py", "ssl"): "the webhook's own certificate",
    ("reconcile/admission/tls.py", "os"): "files in memory, from which OpenSSL reads it",
    ("reconcile/admission/tls.py", "tempfile"): "the same where a system has no files in memory",
    ("reconcile/observe/kind_watch.py", "time"): "hands the clock to the list-watch, which takes it as an argument",
    ("reconcile/observe/kind_watch.py", "random"): "hands chance to the list-watch, which takes it as an argument",
}

PHASE_WORDS: Mapping[tuple[str, str], str] = {
    ("reconcile/simulator/actors/harvester.py", "Initialized"): "a condition of a VirtualMachineImage",
    ("renderer/cli/phases.py", "NodeUpgrade"): "an example for people in the text of a refusal",
}
"""Where a word that is a phase's stands in the code, and why it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    file: str
    line: int
    module: str
    at_load: bool = True

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


@functools.cache
def imports() -> tuple[Import, ...]:
    return tuple(found for file, tree in modules().items() for found in imports_of(file, tree))


def imports_of(file: str, tree: ast.Module) -> Iterator[Import]:
    """Also those inside functions. `from package import module` is an import of the module."""
    later = {id(node) for block in nodes(tree) if is_later(block) for node in ast.walk(block)}
    for node in nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in imported(node):
                yield Import(file=file, line=node.lineno, module=name, at_load=id(node) not in later)


def is_later(node: ast.AST) -> bool:
    """What stands in it is not run when its module is loaded."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    assert node.level == 0, f"line {node.lineno}: an import by a relative name"
    longer = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in longer if is_module(name)] or [str(node.module)]


def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def room_of(module: str) -> str:
    """`renderer.cli.program` and `renderer/cli/program.py` are in `cli`."""
    parts = module.removesuffix(".py").replace("/", ".").split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def rank(package: str, room: str) -> int:
    found = [number for number, rooms in enumerate(ROOMS[package]) if room in rooms.split()]
    assert found, f"{package}/{room} is in no row of ROOMS: say where it stands"
    return found[0]


def allowed(file: str, places: Sequence[str]) -> bool:
    return any(file == place or (place.endswith("/*") and file.startswith(place[:-1])) for place in places)


def test_there_is_something_to_look_at() -> None:
    assert set(ROOMS) == set(PACKAGES)
    assert len(modules()) > 60
    assert len(imports()) > 300


def test_every_room_is_in_the_table_and_the_table_has_no_other() -> None:
    for package, rows in ROOMS.items():
        named = [room for row in rows for room in row.split()]
        there = {room_of(file) for file in modules() if file.startswith(f"{package}/")} - {"__init__"}
        assert sorted(named) == sorted(there)


def test_the_renderer_knows_nothing_of_the_loop() -> None:
    assert [str(found) for found in imports() if found.file.startswith("renderer/") and found.top == "reconcile"] == []


@pytest.mark.parametrize("package", ROOMS)
def test_a_module_imports_from_its_left(package: str) -> None:
    offenders = [
        f"{found}: {room_of(found.module)} stands to the right of {room_of(found.file)}"
        for found in imports()
        if found.file.startswith(f"{package}/") and found.top == package and room_of(found.file) != "__init__"
        if room_of(found.module) != room_of(found.file)
        if rank(package, room_of(found.module)) >= rank(package, room_of(found.file))
    ]
    assert offenders == []


def test_only_commands_and_tests_import_the_simulator() -> None:
    """What production runs does not depend on what it is rehearsed with."""
    offenders = [
        str(found)
        for found in imports()
        if found.module.startswith("reconcile.simulator") and room_of(found.file) not in ("simulator", "cli")
    ]
    assert offenders == []


def test_nobody_imports_in_a_circle() -> None:
    """Inside a room too. A package's own file counts as a module; late imports and those for types do not."""
    graph: dict[str, set[str]] = {}
    for found in imports():
        if found.top in ROOMS and found.at_load:
            name = found.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            graph.setdefault(name, set()).add(found.module)
    graphlib.TopologicalSorter(graph).prepare()


def test_every_library_has_its_door() -> None:
    foreign = [found for found in imports() if found.top not in (*sys.stdlib_module_names, *ROOMS)]
    offenders = [str(found) for found in foreign if not allowed(found.file, DOORS.get(found.top, ()))]
    assert offenders == []
    assert {found.top for found in foreign} == set(DOORS) - {"rich"} | ({"rich"} & {f.top for f in foreign})
    for library, places in DOORS.items():
        if not places[0].endswith("/*"):
            assert len({found.file for found in foreign if found.top == library}) == 1, library


def test_time_chance_network_and_disk_are_at_the_edges() -> None:
    pure = {"urllib.parse"}
    found = [item for item in imports() if item.top in OUTSIDE and item.module not in pure]
    offenders = [item for item in found if not allowed(item.file, OUTSIDE[item.top])]
    assert [str(item) for item in offenders if (item.file, item.top) not in OUTSIDE_TOO] == []
    used = {(item.file, item.top) for item in offenders}
    assert set(OUTSIDE_TOO) - used == set(), "an allowance that nobody needs"


def test_nobody_asks_what_time_it_is_but_a_command() -> None:
    """`clock.now()` of a clock that was handed over is no question to the computer."""
    asked = [
        f"{file}:{node.lineno} {ast.unparse(node)}"
        for file, tree in modules().items()
        for node in nodes(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in ("now", "utcnow", "today") and ast.unparse(node.func.value) in ("datetime", "date")
        if not allowed(file, ("reconcile/cli/*",))
    ]
    assert asked == []


def test_what_is_drawn_is_drawn_from_what_is_given() -> None:
    """Of `uuid` only what is computed from a name is used below the commands."""
    drawn = [
        f"{file}:{node.lineno}"
        for file, tree in modules().items()
        for node in nodes(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("uuid1", "uuid4") and ast.unparse(node.value) == "uuid"
        if not allowed(file, EDGES)
    ]
    assert drawn == []


# -------------------------------------------------------------------------------------------------------------- names

BY_SUBJECT = (
    *("renderer/cli/", "reconcile/cli/", "renderer/context/"),
    *("reconcile/probes/rules/", "reconcile/diagnosis/searches/", "reconcile/simulator/actors/"),
)
"""Where a module is called after a command, a subject of the facts, a rule, a cause or an actor, whoever else has the
name: their folder says the rest."""

NAMED_TWICE: Mapping[str, str] = {
    "errors": "a problem as both packages report it, and the errors of an API server",
    "phase": "the same phase, as declared in phase.yaml and as decided in a round",
    "plan": "the same plan, as rendered, as decided in a round, and as recorded in its status",
    "step": "the same step, as rendered and as decided in a round",
}
"""Modules of one name in two rooms. This table may only shrink: a new module gets a name of its own."""


def test_no_module_name_stands_in_two_rooms() -> None:
    files: dict[str, set[str]] = {}
    for file in modules():
        if not file.startswith(BY_SUBJECT):
            files.setdefault(Path(file).stem, set()).add(file)
    twice = {name: sorted(found) for name, found in files.items() if len(found) > 1 and not name.startswith("__")}
    assert {name: found for name, found in twice.items() if name not in NAMED_TWICE} == {}, "find another name"
    assert sorted(set(NAMED_TWICE) - set(twice)) == [], "no longer needed in NAMED_TWICE"


@pytest.mark.slow
def test_no_class_name_is_used_twice() -> None:
    """In either package; private classes and those of tests may be named alike in the other one."""
    files: dict[tuple[str, str], set[str]] = {}
    for file, tree in (*modules().items(), *modules_of_tests().items()):
        package = file.partition("/")[0]
        for node in nodes(tree):
            if isinstance(node, ast.ClassDef):
                shared = package in ROOMS and not node.name.startswith("_")
                files.setdefault(("product" if shared else package, node.name), set()).add(file)
    twice = {name: sorted(found) for name, found in files.items() if len(found) > 1}
    assert twice == {}, "find another name"


RETIRED: Mapping[str, str] = {
    "classes": "World Theatre Stage Scene Script Cue Wishes Cast Trouble Act Work Ledger Fact What CustomNature "
    "Carrier Kept Admit KeptSteps Draft Sight Ingredients Workshop Outcome Rule Unseen Unfetched Lexicon Tell",
    "modules": "works tasks fates yaml_door schema_door carry telling giving attention contest suitable words given "
    "steer ask theatre mortal outsiders nowhere watched endings",
    "keys": "despiteOthers keepsLane traces joins seed because announce",
}
"""Names that standard words have replaced: of our classes, of modules, and of keys of public documents."""


def test_a_name_that_was_replaced_does_not_come_back() -> None:
    classes = {
        node.name: f"{file}:{node.lineno} {node.name}"
        for file, tree in modules().items()
        for node in nodes(tree)
        if isinstance(node, ast.ClassDef)
    }
    files = {Path(file).stem: file for file in (*modules(), *modules_of_tests())}
    keys = {
        key: f"{path.name}: {key}"
        for path in sorted((ROOT / "schemas").glob("*.json"))
        for key in keys_of(json.loads(path.read_text(encoding="utf-8")))
    }
    named = {"classes": classes, "modules": files, "keys": keys}
    assert [places[name] for what, places in named.items() for name in RETIRED[what].split() if name in places] == []


def keys_of(schema: object) -> Iterator[str]:
    """The keys that documents of a JSON Schema may have."""
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from keys_of(part)


RELATIVE = re.compile(r"(What|When|Whether|Which|Where|How|Why|Who|Whom|Whose|That|(What|Who|Where|When)ever)\b")


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Those of modules, classes, functions, and constants: every text that is a statement of its own."""
    for node in nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value.strip()


def test_a_docstring_begins_with_a_subject_or_a_verb() -> None:
    """`Explains why a plan waits`, and not `Why a plan waits`."""
    found = [
        f"{file}:{line} {text.splitlines()[0]}"
        for file, tree in modules().items()
        for line, text in docstrings(tree)
        if RELATIVE.match(text)
    ]
    assert found == []


def test_a_relative_clause_is_seen_wherever_it_stands() -> None:
    code = '"""What a."""\nX = 1\n"""How b."""\ndef f():\n    """Returns what."""\n'
    assert [bool(RELATIVE.match(text)) for _, text in docstrings(ast.parse(code))] == [True, True, False]


def test_nothing_cites_a_document_that_readers_do_not_have() -> None:
    cited = re.compile(r"behaviou?r spec|periphery|MUST-FIX|\b(AC|FX)-\d")
    files = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "templates").rglob("*"), *(ROOT / "schemas").rglob("*.json")]
    texts = [path for path in (*files, *(ROOT / file for file in modules())) if path.is_file()]
    assert [str(path) for path in texts if cited.search(path.read_text(encoding="utf-8"))] == []


# ------------------------------------------------------------------------------------------------------------- phases


@functools.cache
def phase_words() -> frozenset[str]:
    """Names and status values of the packaged phases."""
    bodies = [parse(file.text, path)[0].value for path, file in templates().items() if path.endswith("/phase.yaml")]
    return frozenset(word for body in bodies for word in (body["name"], *_values(body["status"])))


def _values(status: Mapping[str, Any]) -> tuple[str, ...]:
    return status["active"], status["completed"], *status.get("alsoCompleted", ())


def test_no_module_names_a_phase() -> None:
    """Phases are data: adding one is adding a folder. Documentation may speak of them, code may not."""
    assert len(phase_words()) == 26
    named = re.compile(rf"\b({'|'.join(sorted(phase_words()))})\b")
    found = {
        (file, word): f"{file}:{line} says {word}"
        for file, tree in modules().items()
        for line, text in texts(tree)
        for word in named.findall(text)
    }
    assert [said for place, said in found.items() if place not in PHASE_WORDS] == []
    assert set(PHASE_WORDS) - set(found) == set(), "an allowance that nobody needs"


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text and name of the code, but for documentation: a text that is a statement by itself."""
    documentation = {id(node.value) for node in nodes(tree) if isinstance(node, ast.Expr)}
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


# ------------------------------------------------------------------------------------- the rules see what they look for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import yaml", ["yaml"]),
        ("def f():\n    from kubernetes import client", ["kubernetes"]),
        ("from renderer import errors, names", ["renderer.errors", "renderer.names"]),
        ("from renderer.errors import Problem, Problems", ["renderer.errors"]),
        ("import os.path, time", ["os.path", "time"]),
        ("if TYPE_CHECKING:\n    import yaml", ["yaml"]),
    ],
)
def test_an_import_is_seen_wherever_it_stands(text: str, expected: list[str]) -> None:
    assert [found.module for found in imports_of("x.py", ast.parse(text))] == expected


def test_a_word_is_seen_in_code_and_not_in_documentation() -> None:
    code = '"One"\nx = f"a {1} Two"\nclass A:\n    "Three"\n    Four = Path.Five\n'
    found = {text.strip() for _, text in texts(ast.parse(code))}
    assert found & {"One", "Two", "Three", "Four", "Five"} == {"Two", "Four", "Five"}


def test_a_room_knows_its_place() -> None:
    assert rank("renderer", "errors") < rank("renderer", "yaml_io") < rank("renderer", "cli")
    assert room_of("renderer/cli/program.py") == room_of("renderer.cli.program") == "cli"
    assert room_of("renderer/errors.py") == "errors"
    assert allowed("renderer/files/iso.py", EDGES)
    assert not allowed("renderer/layout/index.py", EDGES)
    assert Path(ROOT / "renderer").is_dir()
