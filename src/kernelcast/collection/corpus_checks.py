"""Checks the corpus's kernels on devices, out of reach of drivers that crash or hang."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path

import numpy as np

from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.launches.settings import prefix
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.problems import Values, run_whole
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.training_data.applications import CorpusKernel, load_reference
from kernelcast.training_data.reference import Array, Reference, Value
from kernelcast.workers import Reporter, Task, stream_isolated


def find_difference(
    run: tuple[Values, Values], reference: Reference, parameters: Mapping[str, int]
) -> str | None:
    """Say where a run differs from its reference, or None."""
    given: list[Value] = [None if value is None else np.copy(value) for value in run[0]]
    wanted = reference.expected(given, parameters)
    if not wanted:
        return "the reference wants nothing"
    for index, (before, after) in enumerate(zip(*run, strict=True)):
        if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
            continue
        if index in wanted:
            expected, tolerance, what = np.asarray(wanted[index]), reference.tolerance, ""
        else:
            expected, tolerance, what = before, 0.0, "was changed: "
        complaint = complain_about_difference(after, expected, tolerance)
        if complaint is not None:
            return f"argument {index}: {what}{complaint}"
    return None


def complain_about_difference(found: Array, wanted: Array, tolerance: float) -> str | None:
    if found.dtype != wanted.dtype or found.size != wanted.size:
        return (
            f"the reference gives {wanted.size} values of {wanted.dtype}, the buffer holds "
            f"{found.size} of {found.dtype}"
        )
    found, wanted = found.ravel(), wanted.ravel()
    try:
        if tolerance == 0.0 or found.dtype.kind in "iu":
            np.testing.assert_array_equal(found, wanted, verbose=False)
        else:
            finite = np.abs(wanted[np.isfinite(wanted)].astype(np.float64))
            # near zero the values' own scale counts, not the element's
            scale = float(finite.mean()) if finite.size else 0.0
            np.testing.assert_allclose(
                found, wanted, rtol=tolerance, atol=tolerance * scale, verbose=False
            )
    except AssertionError as error:
        return " ".join(str(error).split())
    return None


SEED = 11


class CheckStatus(StrEnum):
    PASSED = "passed"
    DIFFERS = "differs"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    kernel: str
    device_id: str
    status: CheckStatus
    explanation: str = ""
    seconds: float = 0.0


def check_corpus(task: tuple[tuple[CorpusKernel, ...], str], report: Reporter) -> None:
    """Check some kernels on one device, each with every local size that it is meant for."""
    report("opening the device")
    kernels, device_id = task
    session = open_session(*choose_device(device_id, find_devices()))
    with session.lock, tempfile.TemporaryDirectory(prefix="kernelcast-") as folder:
        for kernel in kernels:
            report(kernel.name)
            report.give(check_in_session(session, kernel, cache_folder=Path(folder)))


def check_in_session(
    session: DeviceSession,
    kernel: CorpusKernel,
    *,
    cache_folder: Path,
    local_sizes: tuple[tuple[int, ...], ...] | None = None,
) -> CheckOutcome:
    """Check one kernel's result on a device that is open already."""
    started_s = time.perf_counter()
    status, explanation = CheckStatus.PASSED, ""
    if kernel.uses_fp64 and not session.description.has_fp64:
        status, explanation = CheckStatus.SKIPPED, "the device has no double precision"
        local_sizes = ()
    for local_size in kernel.local_sizes if local_sizes is None else local_sizes:
        try:
            reference = load_reference(kernel)
            prepared = prepare_launch(
                kernel, reference.small, local_size=local_size, cache_folder=cache_folder
            )
            run = run_whole(session, prepared.problem, seed=SEED)
            difference = find_difference(run, reference, prepared.parameters)
        except KernelcastError as error:
            status, explanation = CheckStatus.FAILED, f"local size {local_size}: {error}"
            break
        if difference is not None:
            status, explanation = CheckStatus.DIFFERS, f"local size {local_size}: {difference}"
            break
    return CheckOutcome(
        kernel=kernel.name,
        device_id=session.description.id,
        status=status,
        explanation=explanation,
        seconds=time.perf_counter() - started_s,
    )


DEFAULT_CHECK_TIMEOUT_S = 60.0
_CHECK: Task[None] = Task(
    entry="kernelcast.collection.corpus_checks:check_corpus", gives=CheckOutcome
)


def check_on_devices(
    kernels: Sequence[CorpusKernel],
    devices: Sequence[DeviceDescription],
    *,
    timeout_s: float = DEFAULT_CHECK_TIMEOUT_S,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[CheckOutcome]:
    """Check each application in a child process; where it dies, another goes on behind that."""
    for device in devices:
        for _, group in groupby(kernels, key=lambda one: one.application):
            left = list(group)
            while left:
                task = tuple(left), device.id
                try:
                    for outcome in stream_isolated(
                        _CHECK, task, timeout_s=timeout_s, subject=device.id,
                        report=prefix(report, f"{device.id}: "),
                    ):  # fmt: skip
                        del left[0]
                        yield outcome
                except KernelcastError as error:
                    if not left:  # it died of nothing that was to be checked
                        break
                    yield CheckOutcome(
                        kernel=left.pop(0).name, device_id=device.id, status=CheckStatus.FAILED,
                        explanation=str(error),
                    )  # fmt: skip
