"""Checks the corpus's kernels on devices, out of reach of drivers that crash or hang."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from kernelcast.collection.corpus.check_task import CheckOutcome, CheckStatus, CheckTask
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.workers import Task, run_isolated

DEFAULT_CHECK_TIMEOUT_S = 60.0
_CHECK = Task(
    entry="kernelcast.collection.corpus.check_task:check_corpus", returns=tuple[CheckOutcome, ...]
)


def check_on_devices(
    kernels: Sequence[CorpusKernel],
    devices: Sequence[DeviceDescription],
    *,
    timeout_s: float = DEFAULT_CHECK_TIMEOUT_S,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[CheckOutcome]:
    """Check kernels against their references on devices.

    Parameters
    ----------
    kernels : sequence of CorpusKernel
        The kernels; those of one application should follow each other.
    timeout_s : float
        Time limit for one kernel on one device, in seconds.
    """
    for device in devices:
        for _, group in groupby(kernels, key=lambda one: one.application):
            yield from _check(tuple(group), device.id, timeout_s, report)


def _check(
    kernels: tuple[CorpusKernel, ...],
    device_id: str,
    timeout_s: float,
    report: Callable[[str], None],
) -> tuple[CheckOutcome, ...]:
    """Check kernels in one process; if it dies, each in one of its own to see which it was."""
    try:
        outcomes: tuple[CheckOutcome, ...] = run_isolated(
            _CHECK,
            CheckTask(kernels=kernels, device_id=device_id),
            timeout_s=timeout_s * len(kernels),
            subject=device_id,
            report=lambda stage: report(f"{device_id}: {stage}"),
        )
    except KernelcastError as error:
        if len(kernels) > 1:
            return tuple(
                outcome
                for kernel in kernels
                for outcome in _check((kernel,), device_id, timeout_s, report)
            )
        return (
            CheckOutcome(
                kernel=kernels[0].name,
                device_id=device_id,
                status=CheckStatus.FAILED,
                explanation=str(error),
            ),
        )
    return outcomes
