"""What jobs of tests do in their processes; each has a name that a test orders."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from kernelcast.service.jobs import JobOrder
from kernelcast.workers import Reporter


def _tell(report: Reporter, **progress: int) -> None:
    report.give(json.dumps(progress))


def _count(order: JobOrder) -> int:
    """Count how often a job has begun, beside its database."""
    path = Path(order[2]).with_name("count")
    count = int(path.read_text()) if path.exists() else 0
    path.write_text(str(count + 1))
    return count


def be_away_once(order: JobOrder, _: Reporter) -> str:
    """Find no database the first time."""
    error = {"code": "database_unavailable", "message": "away", "detail": None}
    return json.dumps({"result": 1} if _count(order) else {"error": error})


def die_twice(order: JobOrder, report: Reporter) -> str:
    """Come further each time."""
    count = _count(order)
    _tell(report, done=count)
    if count < 2:
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    return json.dumps({"result": count})


def die(_: JobOrder, __: Reporter) -> str:
    """End with a word on standard error alone."""
    sys.stderr.write("out of memory")
    sys.stderr.flush()
    os._exit(7)


def sleep(_: JobOrder, report: Reporter) -> str:
    """Come some way."""
    _tell(report, done=3)
    time.sleep(600)
    return ""
