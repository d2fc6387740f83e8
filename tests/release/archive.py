"""Archives that come out the same wherever and whenever they are made: sorted, of one time, owned by root."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path


def pack(files: Mapping[str, bytes], target: Path, epoch: int) -> None:
    """A tar of these files by name, compressed if the target's name ends in `gz`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(content), epoch, 0o644
            archive.addfile(member, io.BytesIO(content))
    data = packed.getvalue()
    target.write_bytes(gzip.compress(data, mtime=epoch) if target.suffix in (".gz", ".tgz") else data)


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file by its path below the folder."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
