"""Runs a command; prints its wall seconds and peak resident bytes as JSON. A program of its own, and small: what a process had resident
before it became another program counts as that program's peak, too."""
import json
import os
import sys
import time

start = time.monotonic()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(json.dumps({"seconds": time.monotonic() - start, "peak_bytes": usage.ru_maxrss * 1024, "cpu_seconds": usage.ru_utime + usage.ru_stime,
                  "status": os.waitstatus_to_exitcode(status)}))
