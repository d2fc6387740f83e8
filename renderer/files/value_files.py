"""Reads files of values, as helm does."""

from __future__ import annotations

from pathlib import Path

from renderer.files.decode import text_of
from renderer.files.filesystem import read_bytes
from renderer.yaml_io import Document, parse


def read_documents(path: str) -> tuple[Document, ...]:
    """The documents of one file. Raises `Problems`."""
    return parse(text_of(read_bytes(Path(path)), path), path)
