"""Messages for what a JSON Schema refuses: where, what was found, what is expected, and how to fix it.

A row for each word of JSON Schema. It knows errors only by their shape and no document by its meaning; a schema may
bring its own words with `x-message` and `x-remedy` beside the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from renderer.frozen import frozen
from renderer.model.path import Path
from renderer.suggest import closest, did_you_mean
from renderer.validation.fit import map_key, repeated

TIME = r"^\d{4}-\d\d-\d\d[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$"
"""RFC 3339 with a time zone, as `metav1.Time` requires it."""


class SchemaError(Protocol):
    """The part of a `jsonschema.ValidationError` that is used here."""

    validator: Any
    validator_value: Any
    instance: Any
    schema: Any
    context: Any

    @property
    def absolute_path(self) -> Sequence[str | int]: ...
    @property
    def absolute_schema_path(self) -> Sequence[str | int]: ...
    @property
    def relative_schema_path(self) -> Sequence[str | int]: ...


@frozen
class Finding:
    """One thing that is wrong with a value, and its path below that value."""

    reason: str
    path: Path
    message: str
    remedy: str | None = None


def explain(error: SchemaError) -> Iterator[Finding]:
    """One error as findings: an error about a mapping may be about several of its keys."""
    path = tuple(error.absolute_path)
    if "propertyNames" in error.absolute_schema_path and isinstance(error.instance, str):
        path = (*path, error.instance)
    own: Mapping[str, Any] = {} if error.validator in _SELF_EXPLAINING else error.schema
    for finding in _ROWS.get(error.validator, _other)(error, path):
        yield Finding(
            reason=finding.reason,
            path=finding.path,
            message=own.get("x-message", finding.message),
            remedy=own.get("x-remedy", finding.remedy),
        )


def found(value: Any) -> str:
    """A value as a message shows it."""
    if isinstance(value, (Mapping, list)):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if not isinstance(value, str):
        return str(value)
    return f"'{value[:60]}…'" if len(value) > 60 else f"'{value}'"


def _shown(error: SchemaError) -> str:
    """The value of an error as a message shows it; what a schema calls `writeOnly` may be secret and is not shown."""
    return "the value" if error.schema.get("writeOnly") else found(error.instance)


def is_no_text(path: Path, value: Any) -> Finding:
    """For a scalar that is to be text: it was read as something else."""
    return Finding(
        reason="WrongType", path=path, message=f"{found(value)} is not a string", remedy=_text_remedy(path, value)
    )


# ------------------------------------------------------------------------------------------------------------ types

_TYPE_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "null",
}


def _type(error: SchemaError, path: Path) -> Iterator[Finding]:
    expected = [error.validator_value] if isinstance(error.validator_value, str) else list(error.validator_value)
    yield _wrong_type(path, error, expected)


def _wrong_type(path: Path, error: SchemaError, expected: list[str]) -> Finding:
    value = error.instance
    words = " or ".join(_TYPE_WORDS[name] for name in expected if name != "null" or len(expected) == 1)
    message = f"has no value; {words} is expected" if value is None else f"{_shown(error)} is not {words}"
    return Finding(reason="WrongType", path=path, message=message, remedy=_type_remedy(value, expected, path))


def _type_remedy(value: Any, expected: list[str], path: Path) -> str:
    if value is None:
        return "set a value, or remove the key"
    if "string" in expected and isinstance(value, (bool, int, float)):
        return _text_remedy(path, value)
    if isinstance(value, str) and {"integer", "number", "boolean"} & set(expected):
        return "write it without quotes, as a number" if "boolean" not in expected else "write true or false, unquoted"
    if "array" in expected:
        return "write each item on its own line, after a dash"
    return "write it as key: value lines" if "object" in expected else "write one plain value"


def _text_remedy(path: Path, value: Any) -> str:
    if not isinstance(value, (bool, int, float)):
        return "write text"
    noun = "version" if path and str(path[-1]).lower().endswith("version") else "value"
    read_as = ("true" if value else "false") if isinstance(value, bool) else "a number"
    return f"put the {noun} in quotes; YAML read it as {read_as}"


# ------------------------------------------------------------------------------------------------------------- keys


def _unknown(error: SchemaError, path: Path) -> Iterator[Finding]:
    known = error.schema.get("properties", {})
    for name in error.instance:
        if name not in known:
            yield Finding(
                reason="UnknownField",
                path=(*path, name),
                message=f"unknown field '{name}'{did_you_mean(name, known)}",
                remedy=f"correct the name; known fields: {', '.join(known)}" if known else "remove it",
            )


def _missing(error: SchemaError, path: Path) -> Iterator[Finding]:
    """A key that was misspelled is reported as unknown where unknown keys are refused, and not a second time."""
    known = error.schema.get("properties", {})
    strangers = [name for name in error.instance if name not in known]
    for name in error.validator_value:
        close = closest(name, strangers)
        if name not in error.instance and not (close and error.schema.get("additionalProperties") is False):
            message = "is missing" + (f"; there is '{close}'" if close else "")
            remedy = f"rename '{close}' to '{name}'" if close else f"add '{name}'"
            yield Finding(reason="MissingField", path=(*path, name), message=message, remedy=remedy)


def _dependent(error: SchemaError, path: Path) -> Iterator[Finding]:
    for given, names in error.validator_value.items():
        for name in names:
            if given in error.instance and name not in error.instance:
                message, remedy = f"is missing; '{given}' requires it", f"add '{name}', or remove '{given}'"
                yield Finding(reason="MissingField", path=(*path, name), message=message, remedy=remedy)


# ----------------------------------------------------------------------------------------------------------- values


def _enum(error: SchemaError, path: Path) -> Iterator[Finding]:
    expected = error.validator_value if error.validator == "enum" else [error.validator_value]
    texts = [str(value) for value in expected if value not in (None, "")]
    hint = did_you_mean(error.instance, texts) if isinstance(error.instance, str) else ""
    none_of = f"is not one of: {', '.join(texts)}" if len(texts) > 1 else f"is not {', '.join(texts)}"
    message = f"{_shown(error)} {none_of}{hint}"
    yield Finding(reason="InvalidValue", path=path, message=message, remedy="write " + " or ".join(texts))


def _pattern(error: SchemaError, path: Path) -> Iterator[Finding]:
    if error.validator_value == TIME:
        message, remedy = "is not an RFC 3339 time", "write it as 2026-11-28T09:30:00Z"
    else:
        message, remedy = f"does not match {error.validator_value}", "correct the value"
    yield Finding(reason="InvalidValue", path=path, message=f"{_shown(error)} {message}", remedy=remedy)


def _size(error: SchemaError, path: Path) -> Iterator[Finding]:
    size, limit = len(error.instance), error.validator_value
    unit = {"Length": "characters", "Items": "items", "Properties": "keys"}[error.validator[3:]]
    if error.validator.startswith("min"):
        message = "is empty" if size == 0 else f"has {size} {unit}; at least {limit} are required"
        remedy = "set a value" if size == 0 else "add what is missing"
    else:
        message, remedy = f"has {size} {unit}, expected at most {limit}", "make it shorter"
    yield Finding(reason="InvalidValue", path=path, message=message, remedy=remedy)


def _limit(error: SchemaError, path: Path) -> Iterator[Finding]:
    word, advice = ("less", "least") if error.validator == "minimum" else ("more", "most")
    message = f"{_shown(error)} is {word} than {error.validator_value}"
    remedy = f"write a number of at {advice} {error.validator_value}"
    yield Finding(reason="InvalidValue", path=path, message=message, remedy=remedy)


def _unique(error: SchemaError, path: Path) -> Iterator[Finding]:
    if error.validator == "uniqueItems":
        index, what = repeated(error.instance, lambda item: item), ""
    else:
        index = repeated(error.instance, map_key(error.validator_value))
        what = f" (key: {', '.join(error.validator_value)})"
    item = error.instance[index or 0]
    yield Finding(
        reason="InvalidValue",
        path=(*path, index or 0),
        message=f"duplicate entry {found(item)}{what}",
        remedy="remove one of them",
    )


def _choice(error: SchemaError, path: Path) -> Iterator[Finding]:
    """Alternatives. If they only differ in the key that they require, name the keys; else explain the nearest one."""
    required = [name for schema in error.validator_value for name in schema.get("required", ())]
    if required and all(set(schema) == {"required"} for schema in error.validator_value):
        if not isinstance(error.instance, Mapping):
            yield _wrong_type(path, error, ["object"])
            return
        names = ", ".join(f"'{name}'" for name in dict.fromkeys(required))
        missing = not any(name in error.instance for name in required)
        message = f"one of {names} is missing" if missing else f"only one of {names} may be given"
        remedy = f"add one of {names}" if missing else "keep one of them"
        yield Finding(reason="MissingField" if missing else "InvalidValue", path=path, message=message, remedy=remedy)
    elif branches := _branches(error):
        for nested in min(branches, key=lambda errors: _distance(errors, len(error.absolute_path))):
            yield from explain(nested)
    else:
        message = f"{_shown(error)} matches more than one of the allowed forms"
        yield Finding(reason="InvalidValue", path=path, message=message, remedy="use one form")


def _branches(error: SchemaError) -> list[list[SchemaError]]:
    branches: dict[Any, list[SchemaError]] = {}
    for nested in error.context:
        branches.setdefault(nested.relative_schema_path[0], []).append(nested)
    return list(branches.values())


def _distance(errors: list[SchemaError], depth: int) -> tuple[int, int]:
    """The distance of a value from one alternative: a wrong kind of value is farther than any wrong part of it."""
    wrong_kind = sum(e.validator in ("type", "const", "enum") and len(e.absolute_path) == depth for e in errors)
    return wrong_kind, len(errors)


def _other(error: SchemaError, path: Path) -> Iterator[Finding]:
    message = f"{_shown(error)} breaks the rule {error.validator}: {found(error.validator_value)}"
    yield Finding(reason="InvalidValue", path=path, message=message, remedy="correct the value")


_SELF_EXPLAINING = ("type", "required", "additionalProperties", "dependentRequired")
_ROWS: dict[str, Callable[[SchemaError, Path], Iterator[Finding]]] = {
    "type": _type,
    "additionalProperties": _unknown,
    "required": _missing,
    "dependentRequired": _dependent,
    "enum": _enum,
    "const": _enum,
    "pattern": _pattern,
    "uniqueItems": _unique,
    "x-kubernetes-list-map-keys": _unique,
    "anyOf": _choice,
    "oneOf": _choice,
    "minimum": _limit,
    "maximum": _limit,
    **dict.fromkeys((f"{end}{what}" for end in ("min", "max") for what in ("Length", "Items", "Properties")), _size),
}
