"""What a child process does for an estimate: it opens the device once and samples launches."""

import threading
from contextlib import suppress
from functools import cache
from importlib import import_module

from kernelcast.launches.data_folder import kept_folder
from kernelcast.predictor.answering.measuring import run_estimate
from kernelcast.predictor.answering.tasks import EstimateOutcome, EstimateTask
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.contents import draw_ahead
from kernelcast.sampling.core_turns import TURNS
from kernelcast.sampling.discovery import choose_device, find_devices_once
from kernelcast.sampling.problems import list_recipes
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.workers.task import Reporter

_opening = threading.Lock()


def sample_on_device(task: EstimateTask, report: Reporter) -> EstimateOutcome:
    """Predict one problem on one device; the sampled answer is given before features are made."""
    report("opening the device")
    with TURNS.preparing():
        draw_ahead(list_recipes(task.problem, seed=task.settings.seed).values())
        session = _open(task.device_id)
    return run_estimate(session, task, keep=report.give, report=report, give_up=report.give_up)


def make_ready(wanted: str) -> None:
    """Find the devices, and open one before it is asked; an id that fits none opens none."""
    with suppress(KernelcastError):
        devices = find_devices_once()
        description, _ = choose_device(wanted, devices) if wanted else devices[0]
        _open(description.id)


def make_ready_fully(device_id: str) -> None:
    """Open a device and find out all that a sampling wants to know of it; import what it needs."""
    import_module("kernelcast.features.access")
    import_module("kernelcast.predictor.answering.gathering")
    session = _open(device_id)
    with session.lock, session.turns.measuring():
        session.try_out()


def _open(device_id: str) -> DeviceSession:
    with _opening:  # who is asked while it gets ready waits
        return _open_once(device_id)


@cache
def _open_once(device_id: str) -> DeviceSession:
    return open_session(*choose_device(device_id, find_devices_once()), kept_folder())
