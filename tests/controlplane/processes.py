"""Child processes that cannot outlive us, ports that nobody can take, and a folder that is swept if we are killed.

Linux only: parent-death signals, SO_REUSEPORT, flock, /proc.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

PREFIX = "upgradeplan-controlplane-"
LOCK = "lock"

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)  # loaded here: nothing may be loaded between fork and exec


class Workdir:
    """A private folder of one control plane. Its lock is free when its owner is gone, however that came about."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        new = self.path / f"{LOCK}.new"
        self._lock: IO[str] = new.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        new.rename(self.path / LOCK)  # nobody sees it unlocked

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def sweep() -> tuple[Path, ...]:
    """Removes the folders that killed runs have left behind, and says which."""
    return tuple(folder for folder in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")) if _removed(folder))


def _removed(folder: Path) -> bool:
    try:
        with (folder / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # in use, somebody else's, or not locked yet
        return False
    return True


class ReservedPort:
    """A free loopback port that stays ours: bound here without listening, shared with a child by SO_REUSEPORT.

    The kernel gives it to nobody else, so there is no gap between choosing a port and using it, and a server that is
    stopped finds it again.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def __enter__(self) -> ReservedPort:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


class Child:
    """One server. The kernel kills it when the thread that started it ends, however that came about."""

    def __init__(self, command: list[str], workdir: Path) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start servers in the main thread: they die with the thread that started them")
        self.name = Path(command[0]).name
        self.log = workdir / f"{self.name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=workdir,
                env={"PATH": os.defpath, "HOME": os.fspath(workdir), "TMPDIR": os.fspath(workdir)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us alone; we take the children down in order
                preexec_fn=_die_with(os.getpid()),
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def rss_mib(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) // 1024

    def suspend(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """At once: nothing that these servers hold is worth a graceful end."""
        self._process.kill()
        self._process.wait()

    def last_words(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _die_with(parent: int) -> Callable[[], None]:
    def between_fork_and_exec() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent was gone before the signal was asked for
            os._exit(1)

    return between_fork_and_exec
