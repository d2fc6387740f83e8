"""What is done to the output folder, as five operations, so that a test can let each of them fail."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class FileOperations(Protocol):
    """Each raises `OSError`, and then has done nothing or, `write`, a part."""

    def make_folder(self, path: Path) -> None: ...
    def write(self, path: Path, data: bytes) -> None: ...
    def replace(self, source: Path, target: Path) -> None: ...
    def remove(self, path: Path) -> None: ...
    def remove_folder(self, path: Path) -> None: ...


class Disk:
    """The real ones."""

    def make_folder(self, path: Path) -> None:
        path.mkdir(exist_ok=True)

    def write(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)

    def replace(self, source: Path, target: Path) -> None:
        source.replace(target)

    def remove(self, path: Path) -> None:
        path.unlink()

    def remove_folder(self, path: Path) -> None:
        path.rmdir()
