"""Estimates of whole problems on several devices, each device in a process of its own."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from kernelcast.launches.child_processes import share_children
from kernelcast.launches.data_folder import choose_store
from kernelcast.launches.devices import choose_devices, forget_devices
from kernelcast.launches.estimation import ReportProgress
from kernelcast.launches.recordings import RecordedAnswer
from kernelcast.launches.settings import (
    DEFAULT_TIMEOUT_S,
    EstimateSettings,
    check_timeout,
    prefix,
)
from kernelcast.predictor.answering.memory import Answer
from kernelcast.predictor.answering.policy import Policy
from kernelcast.predictor.answering.processes import WarmProcesses
from kernelcast.predictor.predictor import Predictor, PredictorOptions
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError, UnknownDeviceError
from kernelcast.records.estimates import DeviceAnswer
from kernelcast.records.problem import Problem
from kernelcast.training.registry import choose_registry

_NEEDED_LATER = ("kernelcast.launches.data_store", "kernelcast.training_data.store.schema")


def estimate_on_devices(
    problem: Problem,
    devices: Sequence[DeviceDescription],
    *,
    settings: EstimateSettings,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    report: ReportProgress = lambda _: None,
) -> Iterator[RecordedAnswer]:
    """Predict one problem on devices one after the other: two at once would time each other."""
    check_timeout(timeout_s)
    predictor = _find_predictor(choose_registry(), str(choose_store()))
    policy = Policy(settings=settings, timeout_s=timeout_s, spares_samples=True)
    refusals: list[InputError] = []
    for device in devices:
        found: list[Answer] = []
        cause: KernelcastError | None = None
        try:
            predictor.estimate(
                problem,
                device,
                policy=policy,
                report=prefix(report, f"{device.id}: "),
                keep=found.append,
            )
        except KernelcastError as error:
            cause = error
            if isinstance(error, UnknownDeviceError):
                forget_devices()
            if isinstance(error, InputError):
                refusals.append(error)
        answer = DeviceAnswer(
            device_id=device.id,
            device=device.name,
            problem=problem.name,
            kernel=problem.kernel.name,
            estimate=found[0].estimate if found else None,
            error=cause,
        )
        yield RecordedAnswer(answer=answer, recording=found[0].recording if found else None)
    if refusals and len(refusals) == len(devices):
        raise refusals[0]


def find_devices(device_ids: Sequence[str]) -> list[DeviceDescription]:
    return choose_devices(device_ids, _share_processes().children)


def import_ahead() -> None:
    """Import what a store of observations needs, while devices are looked for: 0.1 s."""
    store = choose_store()
    if "://" not in str(store) and not Path(store).is_file():
        return
    for name in _NEEDED_LATER:
        with suppress(ImportError):  # who needs it tells why it cannot be had
            import_module(name)


@cache
def _share_processes() -> WarmProcesses:
    return WarmProcesses(children=share_children())


@cache
def _find_predictor(registry: str, store: str) -> Predictor:
    return Predictor(
        registry=registry, store=store, options=PredictorOptions(executor=_share_processes())
    )
