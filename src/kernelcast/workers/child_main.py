"""A child process that does tasks for its parent: ``python -m`` this module.

Drivers compile and run foreign code; what crashes or hangs here does not take the parent along.
Its arguments are the descriptor of a socket, for orders and messages, for how many seconds to wait
for another order, and what to do before the first: modules to import, or ``module:function:text``
to call with a text, those that begin with `BESIDE` while orders are done already; its standard
input is the lifeline, with which it ends as its parent does, however that ends: the parent holds
one end of a pipe and never writes; Linux sends SIGKILL when that end closes. Unlike the
parent-death signal of prctl, this does not take the thread that started the child for the parent,
reaches into PID namespaces, and needs no thread of Python's, which a driver that never returns
would keep from running.
"""

import contextlib
import fcntl
import gc
import importlib
import logging
import os
import pickle
import pkgutil
import resource
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Sequence

from kernelcast.records.errors import KernelcastError
from kernelcast.workers.protocol import (
    BESIDE,
    Channel,
    ClosedError,
    MessageKind,
    Reporter,
    name_error,
)


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


def main() -> None:
    die_with_parent()
    logging.getLogger("kernelcast").addHandler(logging.StreamHandler())  # to standard error
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connected = socket.socket(fileno=int(sys.argv[1]))
    connected.set_inheritable(False)  # compilers that drivers start must not keep it open
    idle_s = float(sys.argv[2])
    channel = Channel(connected, most_bytes=1 << 62)
    gc.disable()  # what is imported stays: to look for garbage in it takes a sixth of the time
    steps = sys.argv[3:]
    beside = [step.removeprefix(BESIDE) for step in steps if step.startswith(BESIDE)]
    _make_ready([step for step in steps if not step.startswith(BESIDE)])
    if beside:
        threading.Thread(target=_make_ready, args=(beside,), daemon=True).start()
    gc.freeze()
    gc.enable()
    try:
        _do(channel.receive(), channel)
        while idle_s:
            _do(channel.receive(within_s=idle_s), channel)
    except (ClosedError, TimeoutError):  # the parent has ended, or has nothing more to do
        pass
    # Some drivers hang or crash in their exit handlers; everything that matters has been sent.
    os._exit(0)


def _make_ready(steps: Sequence[str]) -> None:
    for step in steps:
        module, _, call = step.partition(":")
        function, _, text = call.partition(":")
        with contextlib.suppress(Exception):  # the task that needs it tells why it cannot be had
            found = importlib.import_module(module)
            if call:
                getattr(found, function)(text)


def _do(order: bytes, channel: Channel) -> None:
    """Do one task and tell how it went."""
    reporter = Reporter(channel)
    try:
        entry, arguments = pickle.loads(order)
        reporter.tell(MessageKind.RESULT, pkgutil.resolve_name(entry)(arguments, reporter))
    except KernelcastError as error:
        reporter.tell(MessageKind.ERROR, (name_error(error), str(error)))
    except ClosedError:
        raise
    except Exception:  # noqa: BLE001 - a bug of ours must be told apart from a driver's crash
        reporter.tell(MessageKind.BUG, traceback.format_exc())


if __name__ == "__main__":
    main()
