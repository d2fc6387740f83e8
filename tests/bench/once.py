"""Runs one command and prints what it took, as JSON. A program of its own, and a small one, for the sake of memory:

what Linux counts as a process's largest memory begins with that of the process that started it.
"""

import json
import os
import sys
import time

command = sys.argv[1:]
nowhere = os.open(os.devnull, os.O_RDWR)
beside = [(os.POSIX_SPAWN_DUP2, nowhere, 0), (os.POSIX_SPAWN_DUP2, nowhere, 1)]
start = time.perf_counter()
pid = os.posix_spawnp(command[0], command, os.environ, file_actions=beside)
_, status, used = os.wait4(pid, 0)
seconds = time.perf_counter() - start
unit = 1 if sys.platform == "darwin" else 1024
code = os.waitstatus_to_exitcode(status)
taken = {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss * unit / 1024**2}
print(json.dumps({"taken": taken, "code": code}))
