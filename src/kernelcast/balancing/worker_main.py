"""A device's process while a launch is balanced: ``python -m`` this module.

It binds itself to cores before anything else: runtimes start their threads when they are loaded.
Two descriptors are its arguments, for messages and for shared memory; standard input is the
lifeline (`kernelcast.workers.lifeline`). The first message says what to open; both ends are this
package, on this machine, and the kernel is the user's own: messages are pickles here.
"""

import os
import socket
import sys
import time
from multiprocessing.connection import Connection

from kernelcast.balancing.messages import Failed
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.partial_launch_cores import bind_to_cores
from kernelcast.workers.lifeline import die_with_parent


def main() -> None:
    """Serve one device until the host is done with it."""
    die_with_parent()
    channel = Connection(int(sys.argv[1]))
    memory = socket.socket(fileno=int(sys.argv[2]))
    device_id, cores, compute_units = channel.recv()
    start_s = time.monotonic()
    try:
        bind_to_cores(cores)
    except KernelcastError as error:
        channel.send(Failed(start_s=start_s, end_s=time.monotonic(), error=error))
    else:
        from kernelcast.balancing.worker import serve

        serve(channel, lambda: _receive_descriptor(memory), device_id, compute_units)
    # Some drivers hang or crash in their exit handlers; everything that matters has been sent.
    os._exit(0)


def _receive_descriptor(memory: socket.socket) -> int:
    _, descriptors, _, _ = socket.recv_fds(memory, 1, 1)
    return descriptors[0]


if __name__ == "__main__":
    main()
