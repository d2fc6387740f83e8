"""Turns bytes into documents: what is text and what is not, YAML and JSON.

No disk here; the names of files are for problems only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from renderer.errors import Problems, problem
from renderer.frozen import frozen
from renderer.source_document import without_lines
from renderer.yaml_io import Allowance, Document, parse

_DEEPEST = 100  # as the YAML door has it
_LONG = 2**20  # from here on speed is worth more than line numbers
_SPACE = re.compile(r"[ \t\r\n]*")
_DOUBTFUL = re.compile(r"\\u(0000|[dD][89a-fA-F])")

_VALUES_A_NODE = 4
"""Values of JSON take as much memory as one node of YAML, which knows its line."""

Read = Callable[[str, str, Allowance], tuple[Document, ...]]


@frozen
class Form:
    """A kind of content that is not UTF-8 text, known by what stands at `offset`."""

    name: str
    offset: int = 0
    magic: bytes
    remedy: str


ISO = Form(name="an ISO image", offset=32769, magic=b"CD001", remedy="pass it with --release")
ZIP = Form(name="a zip archive", magic=b"PK\x03\x04", remedy="pass it as a file, or unpack it and pass the folder")
FORMS = (
    ISO,
    ZIP,
    Form(name="compressed with gzip", magic=b"\x1f\x8b", remedy="unpack it first"),
    Form(name="compressed with zstd", magic=b"\x28\xb5\x2f\xfd", remedy="unpack it first"),
    Form(name="UTF-32 text", magic=b"\xff\xfe\0\0", remedy="save it as UTF-8"),
    Form(name="UTF-32 text", magic=b"\0\0\xfe\xff", remedy="save it as UTF-8"),
    Form(name="UTF-16 text", magic=b"\xff\xfe", remedy="save it as UTF-8"),
    Form(name="UTF-16 text", magic=b"\xfe\xff", remedy="save it as UTF-8"),
)
"""A row for each form that is known by its content. One that is read gets its reader where its option is read."""


def form_of(data: bytes) -> Form | None:
    """The form of the content, if it is known not to be text. The first 64 KiB are enough."""
    return next((form for form in FORMS if data.startswith(form.magic, form.offset)), None)


def text_of(data: bytes, file: str) -> str:
    """Raises `Problems` for what is not UTF-8 text. A byte order mark is dropped."""
    if (form := form_of(data)) is not None:
        raise problem("NotText", f"is {form.name}, not UTF-8 text", file=file, remedy=form.remedy)
    if b"\0" in data:
        raise problem("NotText", "is a binary file", file=file, remedy="pass a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise problem("NotText", message, file=file, line=line, remedy="save the file as UTF-8") from error


def documents_of(text: str, file: str, allowance: Allowance | None = None) -> tuple[Document, ...]:
    """The documents of YAML or JSON text. Raises `Problems`, also if there is none. `allowance`: of several files.

    JSON is YAML except for a few escapes and tabs, and the YAML door knows lines; so JSON has its own reader for what
    that door refuses, and first for long text: `kubectl get -o json` of a large cluster.
    """
    allowance = allowance or Allowance()
    if text.lstrip()[:1] not in ("{", "["):
        found = parse(text, file, allowance)
    else:
        found = _first_that_reads((_json, parse) if len(text) > _LONG else (parse, _json), text, file, allowance)
    if not found:
        message = "contains only comments" if text.strip() else "is empty"
        raise problem("EmptyFile", message, file=file, remedy="add a document, or remove the file")
    return found


def _first_that_reads(readers: Sequence[Read], text: str, file: str, allowance: Allowance) -> tuple[Document, ...]:
    """The answer of the first reader that can read the text; if none can, the YAML door's problem, which has a line."""
    refusal = Problems([])
    for reader in readers:
        try:
            return reader(text, file, allowance)
        except Problems as error:
            refusal = error if error.problems else refusal
    raise refusal


def _json(text: str, file: str, allowance: Allowance) -> tuple[Document, ...]:
    """JSON values, one after the other. Raises empty `Problems` if it is anything else."""
    allowance.spend(sum(map(text.count, ",[{")) // _VALUES_A_NODE)
    if allowance.is_spent:
        raise problem("TooLarge", "contains too many values", file=file, remedy="split it")
    try:
        values = tuple(_json_values(text))
        _check_depth(values)
        if _DOUBTFUL.search(text):
            _check_text(values)
    except (ValueError, RecursionError) as error:
        raise Problems([]) from error
    return tuple(without_lines(value, file) for value in values if value is not None)


def _json_values(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder(
        object_pairs_hook=_unique, parse_float=_finite, parse_int=_number, parse_constant=_finite
    )
    position = _after_space(text, 0)
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        yield value
        position = _after_space(text, position)


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("duplicate key")
    return mapping


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError(f"{text} is not a number that JSON has")
    return value


def _number(text: str) -> int | float:
    value = int(text)
    return value if -(2**63) <= value < 2**64 else float(text)


def _check_depth(values: tuple[Any, ...]) -> None:
    level: list[Any] = [values]
    for _ in range(_DEEPEST):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return
    raise ValueError("nested too deep")


def _check_text(values: tuple[Any, ...]) -> None:
    if "\\u0000" in json.dumps(values):
        raise ValueError("a text holds a null character")
    json.dumps(values, ensure_ascii=False).encode()  # a lone surrogate cannot be encoded
