"""A process that ends with its parent, however the parent ends.

The parent holds one end of a pipe and never writes; the child has Linux send it SIGKILL when that
end closes. Unlike the parent-death signal of prctl, this does not take the thread that started the
child for the parent, reaches into PID namespaces, and needs no thread of Python's, which a driver
that never returns would keep from running.
"""

import fcntl
import os
import select
import signal
import sys


def die_with_parent() -> None:
    """Ask to be killed when the other end of standard input closes; it reads as empty then."""
    lifeline = os.dup(0)  # not inherited by compilers that drivers start
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
        poll = select.poll()
        poll.register(lifeline, select.POLLIN)
        if poll.poll(0):  # it had ended before anybody listened
            os._exit(1)
