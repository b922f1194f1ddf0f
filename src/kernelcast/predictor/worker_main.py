"""A child process that does one task for its parent: ``python -m`` this module.

Drivers compile and run foreign code; what crashes or hangs here does not take the parent along.
The task comes as a pickle on standard input, messages go back through the pipe whose descriptor
is the only argument: both ends are this package, on this machine, one parent, one child.
"""

import os
import pickle
import sys
from multiprocessing.connection import Connection

from kernelcast.predictor.tasks import run_task
from kernelcast.records.errors import KernelcastError


def main() -> None:
    """Do the task and end."""
    name, arguments = pickle.load(sys.stdin.buffer)
    channel = Connection(int(sys.argv[1]), readable=False)
    try:
        result = run_task(name, arguments, lambda stage: channel.send(("progress", stage)))
    except KernelcastError as error:
        channel.send(("error", error))
    else:
        channel.send(("result", result))
    # Some drivers hang or crash in their exit handlers; everything that matters has been sent.
    os._exit(0)


if __name__ == "__main__":
    main()
