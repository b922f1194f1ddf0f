"""A child process that samples launches for its parent, one after the other: ``python -m`` this.

The arguments are the descriptors of two pipes, for tasks and for answers, and how many seconds to
wait for a task. Tasks are pickles: both ends are this package, on this machine, one parent, one
child.
"""

import os
import pickle
import sys
import threading
import traceback
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

from kernelcast.predictor.answering.asking import EstimateOutcome, EstimateTask
from kernelcast.predictor.answering.measuring import run_estimate
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.runtimes import pin_threads
from kernelcast.sampling.session import DeviceSession, open_session

_MOST_TASKS = 200
"""Programs and their buffers are remembered: after so many tasks the memory is given back."""
_WATCH_S = 1.0


def main() -> None:
    """Do tasks until there are none."""
    _die_with(os.getppid())
    pin_threads()
    orders = Connection(int(sys.argv[1]), writable=False)
    answers = Connection(int(sys.argv[2]), readable=False)
    idle_s = float(sys.argv[3])
    bench = _Bench()
    try:
        for _ in range(_MOST_TASKS):
            if not orders.poll(idle_s):
                break
            if not _serve(pickle.loads(orders.recv_bytes()), answers, bench):
                break
    except (EOFError, BrokenPipeError):  # the parent has ended
        pass
    # Some drivers hang or crash in their exit handlers; everything that matters has been sent.
    os._exit(0)


@dataclass(slots=True)
class _Bench:
    """What is ready from earlier tasks: the device, and how long each kernel took to build."""

    session: DeviceSession | None = None
    compile_s: dict[str, float | None] = field(default_factory=dict)


def _serve(task: EstimateTask, answers: Connection, bench: _Bench) -> bool:
    """Do one task; tell whether the device can be trusted with another."""

    def report(stage: str) -> None:
        answers.send(("progress", stage))

    def keep(item: Any) -> None:  # noqa: ANN401
        answers.send(("item", item))

    def give_up(error: KernelcastError) -> None:
        answers.send(("error", error))
        os._exit(0)  # the thread that waits for the driver does not end

    try:
        report("opening the device")
        if bench.session is None:
            bench.session = open_session(*choose_device(task.device_id, find_devices()))
        result = _state_compile_time(
            run_estimate(bench.session, task, keep=keep, report=report, give_up=give_up),
            task,
            bench,
        )
    except InputError as error:  # refused before anything ran
        answers.send(("error", error))
        return True
    except KernelcastError as error:
        answers.send(("error", error))
        return False
    except Exception:  # noqa: BLE001 - a bug of ours must be told apart from a driver's crash
        answers.send(("bug", traceback.format_exc()))
        return False
    answers.send(("result", result))
    return True


def _state_compile_time(
    outcome: EstimateOutcome, task: EstimateTask, bench: _Bench
) -> EstimateOutcome:
    """Say what building the kernel costs whoever has not built it: the first time's cost."""
    estimate = outcome.estimate
    first_s = bench.compile_s.setdefault(task.problem.kernel.digest, estimate.compile_seconds)
    return replace(outcome, estimate=replace(estimate, compile_seconds=first_s))


def _die_with(parent: int) -> None:
    """End when the parent has: a kernel that never ends must not outlive it.

    Linux's own way counts the thread that started us as the parent, which may end before.
    """

    def watch() -> None:
        while os.getppid() == parent:
            _PAUSE.wait(_WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


_PAUSE = threading.Event()

if __name__ == "__main__":
    main()
