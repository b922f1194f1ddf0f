"""A process that does one job: ``python -m`` this module, started by `kernelcast.service.jobs`.

The order comes as a line of JSON on standard input, which is the lifeline from then on
(`kernelcast.workers.lifeline`). What happens goes as JSON lines to the descriptor that is
the only argument, so that nothing that a driver prints gets in between.
"""

import json
import logging
import os
import signal
import sys
import time
from typing import Any

from kernelcast.predictor.jobs import JobPlace, run_job
from kernelcast.records.errors import KernelcastError
from kernelcast.records.service_state import JobKind
from kernelcast.service.device_lock import hold_device
from kernelcast.service.errors import kind_of
from kernelcast.workers.lifeline import die_with_parent


class _Teller:
    """Writes what happens; progress not more often than twice a second."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "w", encoding="utf-8")
        self._next_s = 0.0
        self._done = -1

    def tell(self, kind: str, content: object) -> None:
        """Write a line."""
        self._stream.write(json.dumps({kind: content}) + "\n")
        self._stream.flush()

    def report(self, progress: dict[str, Any]) -> None:
        """Write where the job stands; a further part that is done is always told."""
        now_s = time.monotonic()
        done = progress.get("done", -1)
        if now_s >= self._next_s or done != self._done:
            self._next_s, self._done = now_s + 0.5, done
            self.tell("progress", progress)


def main() -> None:
    """Do the job and end."""
    # Whoever cancels does not wait for handlers; what is stored is stored row by row.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    order = json.loads(sys.stdin.readline())
    die_with_parent()  # a job must not run twice
    logging.getLogger("kernelcast").addHandler(logging.StreamHandler())  # to standard error
    teller = _Teller(int(sys.argv[1]))
    place = JobPlace(database=order["database"], registry=order["registry"], hold=hold_device)
    try:
        result = run_job(JobKind(order["kind"]), order["options"], place, teller.report)
    except KernelcastError as error:
        teller.tell("error", {"code": kind_of(error).code, "message": str(error), "detail": None})
    else:
        teller.tell("result", result)
    # Threads of libraries must not keep a job alive that is done.
    os._exit(0)


if __name__ == "__main__":
    main()
