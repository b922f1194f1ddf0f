"""A device's process while a launch is balanced: ``python -m`` this module.

It binds itself to cores before anything else: runtimes start their threads when they are loaded.
Two descriptors are its arguments, for messages and for shared memory. The first message says what
to open; both ends are this package, on this machine.
"""

import ctypes
import os
import signal
import socket
import sys
import time
from multiprocessing.connection import Connection

from kernelcast.predictor.balancing.messages import Failed
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.partial_launch_cores import bind_to_cores


def main() -> None:
    """Serve one device until the host is done with it."""
    _die_with_parent()
    channel = Connection(int(sys.argv[1]))
    memory = socket.socket(fileno=int(sys.argv[2]))
    device_id, cores, compute_units = channel.recv()
    start_s = time.monotonic()
    try:
        bind_to_cores(cores)
    except KernelcastError as error:
        channel.send(Failed(start_s=start_s, end_s=time.monotonic(), error=error))
    else:
        from kernelcast.predictor.balancing.worker import serve

        serve(channel, lambda: _receive_descriptor(memory), device_id, compute_units)
    # Some drivers hang or crash in their exit handlers; everything that matters has been sent.
    os._exit(0)


def _receive_descriptor(memory: socket.socket) -> int:
    _, descriptors, _, _ = socket.recv_fds(memory, 1, 1)
    return descriptors[0]


def _die_with_parent() -> None:
    """Ask Linux to kill us when the parent dies: an endless kernel must not outlive it."""
    if sys.platform == "linux":
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG of sys/prctl.h
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    main()
