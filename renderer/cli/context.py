"""`phases NAME --context`: every name that the templates of a phase may use, and what stands behind it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from renderer.assemble import Assembly, assemble
from renderer.catalog.verify import INPUTS, captures_of
from renderer.cli.answer import Model, table, warn
from renderer.cli.input_options import InputOptions, read, tree_of
from renderer.context.build import context_of, for_step
from renderer.context.scope import SYMBOLIC_NODE, Scope
from renderer.describe import describe_value
from renderer.documents import Inputs
from renderer.layout.select import unknown
from renderer.source_document import SourceDocument, without_lines
from renderer.validation import load

if TYPE_CHECKING:
    from renderer.catalog.load import Catalog
    from renderer.model.phase import Phase

GIVEN_BY: Mapping[str, str] = {
    "plan": "the UpgradePlan",
    "release": INPUTS["releaseMetadata"],
    "version": INPUTS["version"],
    "cluster.nodes": INPUTS["nodes"],
    "cluster.fullNodes": "the names of cluster.nodes, without witnesses",
    "cluster.singleNode": INPUTS["nodes"],
    "cluster.previousVersion": INPUTS["previousVersion"],
    "toolkit.image": "values.toolkitImage, or the plan's annotation upgrade-toolkit-image",
    "toolkit.tag": INPUTS["toolkitTag"],
    "toolkit.repoTag": INPUTS["repoTag"],
    "toolkit.pullSecrets": "values.imagePullSecrets, as a pod has them",
    "isoImage": "spec.image, or a name that begins with the plan's",
    "imageLists": INPUTS["imageLists"],
    "fetched": "read over HTTP during the run by the step that declares it",
    "values": "values.yaml of the template tree",
    "retry": "--retry",
    "captured": "read during the run when the step that declares it starts",
    "node": "the node of a step with `forEach: node`",
}
"""Name, or the first part of it, to where its value comes from. A test holds it to the names that there are."""

DESCRIPTIONS: Mapping[str, str] = {
    "name": "the plan's name and these parts, as a name that every object may have",
    "detectorName": "the same as the toolkit's detector shortens the name of its list of stopped virtual machines",
    "oneShotName": "the same for what runs once: with --retry N it ends in retry-N",
    "annotation": "the plan's annotation management.harvesterhci.io/<key>",
    "labelValue": "the text as a label's value; shortened where it is too long",
    "range": "numbers, one after the other",
    "dict": "a mapping of these keys and values",
    "fail": "ends the rendering with this message",
}

_TYPES = {"string": "text", "integer": "number", "object": "mapping", "array": "list"}
"""JSON Schema's words to those of people who write templates."""
_SCHEMAS: Mapping[str, Callable[[], Any]] = {
    "plan": lambda: load("built/upgradeplan.json"),
    "release": lambda: load("release.json"),
    "imageLists": lambda: load("facts.json")["properties"]["facts"]["properties"]["imageLists"],
}


def context_model(name: str, given: InputOptions) -> Model:
    """Names with type, value and origin; functions with their signatures; filters. Raises `Problems`."""
    assembly = _assembly(given)
    phase = _phase(assembly.catalog, name)
    seen = for_step(context_of(assembly.facts), None, captures_of(phase), {}).names
    if any(step.for_each for step in phase.steps):
        seen = {**seen, "node": SYMBOLIC_NODE}
    functions = {**seen, **assembly.templates.functions}
    scopes = {key: value for key, value in seen.items() if not callable(value)} | _late(assembly.catalog, seen)
    return {
        "phase": name,
        "names": [
            _entry(path, value, known=given.names_inputs)
            for key, scope in scopes.items()
            for path, value in _leaves(key, scope)
        ],
        "functions": [_function(key, value) for key, value in functions.items() if callable(value)],
        "filters": sorted(assembly.templates.filters),
    }


def context_text(model: Model) -> Iterator[str]:
    """The model as three lists."""
    names = [(item["name"], _shown(item), item["givenBy"]) for item in model["names"]]
    functions = [(item["name"] + item["signature"], item["description"]) for item in model["functions"]]
    yield from table([("NAME", "VALUE OR TYPE", "GIVEN BY"), *names])
    yield ""
    yield from table([("FUNCTION", "ANSWERS"), *functions])
    yield ""
    yield f"filters: {', '.join(model['filters'])}"


def _assembly(given: InputOptions) -> Assembly:
    """With inputs, what they say; without, a plan in which nothing is set."""
    inputs, tree = read(given) if given.names_inputs else (_no_inputs(), tree_of(given))
    assembly = assemble(inputs, tree, retry=given.retry)
    warn(assembly.catalog.warnings)
    return assembly


def _no_inputs() -> Inputs:
    bare = {"metadata": {"name": "<plan>"}, "spec": {}}
    return Inputs(plan=SourceDocument(body=bare, document=without_lines(bare, "<no plan>")))


def _phase(catalog: Catalog, name: str) -> Phase:
    found = {item.phase.name: item.phase for item in catalog.phases}
    if name not in found:
        raise unknown("phase", name, list(found))
    return found[name]


def _late(catalog: Catalog, seen: Mapping[str, Any]) -> dict[str, Any]:
    """The names that come with an input or during the run, as far as they are declared: none may be there yet."""
    fetches = (fetch.name for item in catalog.phases for step in item.phase.steps for fetch in step.fetches)
    declared = {
        "release": load("release.json")["properties"],
        "version": ("isoURL", "isoChecksum"),
        "imageLists": ("current", "previous"),
        "fetched": tuple(fetches),
    }
    return {key: Scope(key, {**dict.fromkeys(names), **seen[key]}) for key, names in declared.items()}


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every value that is not a mapping, with its path; of a list's items only the first is looked into."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}" if key.isidentifier() else f'{path}["{key}"]', item)
        return
    yield path, value
    if isinstance(value, tuple) and value and isinstance(value[0], Mapping):
        yield from _leaves(f"{path}[0]", value[0])


def _entry(path: str, value: Any, *, known: bool) -> Model:
    """`known`: the values are those of real inputs. Those of the template tree always are."""
    entry = {"name": path, "type": _type(path, value), "givenBy": _origin(path)}
    root = path.split(".")[0]
    is_real = root in ("values", "retry") or (known and root not in ("captured", "node"))
    return entry | ({"value": _plain(value)} if is_real and value is not None and value != {} else {})


def _type(path: str, value: Any) -> str:
    if isinstance(value, Mapping) or value is None:
        return _declared_type(path) if value is None else "mapping"
    if isinstance(value, bool):
        return "boolean"
    return {int: "number", float: "number", str: "text", tuple: "list"}.get(type(value), "text")


def _declared_type(path: str) -> str:
    root, *steps = path.split(".")
    schema: Any = _SCHEMAS[root]() if root in _SCHEMAS else {}
    for step in steps:
        schema = schema.get("properties", {}).get(step, {})
    word = schema.get("type", "string")
    return _TYPES.get(word if isinstance(word, str) else word[0], str(word))


def _origin(path: str) -> str:
    parts = path.split("[")[0].split(".")
    return next(GIVEN_BY[key] for key in (".".join(parts[:2]), parts[0]) if key in GIVEN_BY)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _shown(item: Model) -> str:
    if "value" not in item:
        return f"({item['type']})"
    value = item["value"]
    is_long = isinstance(value, list) and (len(value) > 3 or any(isinstance(part, dict) for part in value))
    return f"{len(value)} items" if is_long else describe_value(value)


def _function(name: str, value: Callable[..., Any]) -> Model:
    return {"name": name, "signature": _signature(value), "description": DESCRIPTIONS[name]}


def _signature(value: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(value, eval_str=True))
    except (TypeError, ValueError):  # `dict` is built in and has none
        return "(**items)"
