"""Makes problems of the corpus's kernels, and checks what these compute on devices.

Parameters and local sizes are replaced, generated inputs kept. Checks run out of reach of drivers
that crash or hang.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path

import numpy as np
import yaml

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.problem_file import read_parameters, read_problem
from kernelcast.launches.settings import prefix
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.ndrange import MAX_DIMENSIONS
from kernelcast.records.private_files import make_private_folder
from kernelcast.records.problem import Problem
from kernelcast.sampling.problems import Values, run_whole
from kernelcast.sampling.session import DeviceSession, open_device
from kernelcast.training_data.applications import (
    CorpusKernel,
    InputMaker,
    load_input_maker,
    load_reference,
)
from kernelcast.training_data.reference import Reference, Value
from kernelcast.workers import Reporter, Task, stream_isolated

LOCAL_PARAMETERS = tuple(f"LOCAL{axis}" for axis in range(MAX_DIMENSIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedProblem:
    problem: Problem
    parameters: Mapping[str, int]
    """All parameters of the problem file, those that follow from others and from the inputs
    included."""
    replaced: Mapping[str, int]
    """Those of them that are not as the problem file has them: given, of the local size, of the
    inputs."""
    inputs_folder: Path | None


def prepare_launch(
    kernel: CorpusKernel,
    parameters: Mapping[str, int],
    *,
    local_size: tuple[int, ...],
    cache_folder: Path | None = None,
) -> PreparedProblem:
    """Make the problem of a corpus kernel with any of its parameters replaced.

    Generated inputs are kept in `cache_folder`, else in the data folder.
    """
    known = read_parameters(kernel.problem_path)
    extents = dict(zip(LOCAL_PARAMETERS, local_size, strict=False))
    chosen = dict(parameters) | {name: one for name, one in extents.items() if name in known}
    complete = _read_whole_numbers(kernel, chosen)
    make, folder = load_input_maker(kernel), None
    if make is not None:  # parameters may follow from the inputs
        given = {name: value for name, value in complete.items() if name not in LOCAL_PARAMETERS}
        code = (kernel.problem_path.parent / "inputs.py").read_bytes()
        kept_in = cache_folder or data_folder() / "corpus"
        folder, made = keep_inputs(kept_in, kernel.application, given, code, make)
        chosen |= made
    problem = read_problem(kernel.problem_path, parameters=chosen, inputs_folder=folder)
    if problem.ndrange.local_size != tuple(local_size):
        raise InputError(
            f"{kernel.name}: local size {local_size} was asked for, the problem file makes it "
            f'{problem.ndrange.local_size}; it must say `local_size: ["{{LOCAL0}}", ...]`'
        )
    complete = _read_whole_numbers(kernel, chosen)
    return PreparedProblem(
        problem=problem, parameters=complete, replaced=chosen, inputs_folder=folder
    )


def _read_whole_numbers(kernel: CorpusKernel, chosen: Mapping[str, int]) -> dict[str, int]:
    parameters = read_parameters(kernel.problem_path, parameters=chosen)
    for name, value in parameters.items():
        if not float(value).is_integer():
            msg = f"{kernel.name}: parameter {name} is {value}; the corpus takes whole numbers"
            raise InputError(msg)
    return {name: int(value) for name, value in parameters.items()}


_MADE = "made.json"
_MAKING = "making-"
# Inputs that were asked for within so many seconds may be about to be read: they stay.
_IN_USE_S = 600.0


def keep_inputs(
    folder: Path, application: str, parameters: Mapping[str, int], code: bytes, make: InputMaker,
    *, most_bytes: int = 8 << 30,
) -> tuple[Path, dict[str, int]]:  # fmt: skip
    """Return where inputs are and the parameters that follow; make them if need be.

    Several processes may use the folder at once: it holds a folder per application, in it one for
    each set of parameters. Where all together take more bytes than they may, those go that were
    used longest ago: a collection of every kernel at some sizes generates tens of GB.
    """
    identity = json.dumps([application, dict(parameters)], sort_keys=True).encode() + code
    kept = folder / application / hashlib.sha256(identity).hexdigest()[:16]
    try:
        os.utime(kept)  # before anything else: what was just used is not dropped
    except FileNotFoundError:
        make_private_folder(kept.parent)
        making = Path(tempfile.mkdtemp(prefix=_MAKING, dir=kept.parent))
        try:
            made = make(dict(parameters), making)
            (making / _MADE).write_text(json.dumps(made), encoding="utf-8")
            try:
                making.rename(kept)
            except OSError:
                if not kept.is_dir():
                    raise
        finally:
            shutil.rmtree(making, ignore_errors=True)
        # Drop what was used longest ago until the rest is small enough, and unfinished folders.
        entries = []
        for one in folder.glob("*/*/"):
            with suppress(OSError):  # another process has just dropped it
                size = sum(file.stat().st_size for file in one.iterdir())
                entries.append((one.stat().st_mtime, one, size))
        total = 0
        for used_s, old, size in sorted(entries, reverse=True):
            total += size
            is_surplus = total > most_bytes or old.name.startswith(_MAKING)
            if is_surplus and time.time() - used_s > _IN_USE_S:
                shutil.rmtree(old, ignore_errors=True)
    return kept, json.loads((kept / _MADE).read_text(encoding="utf-8"))


def write_runnable_copy(kernel: CorpusKernel, folder: Path, parameters: Mapping[str, int]) -> Path:
    """Write a kernel's problem file, source and inputs into ``folder/<application>/<stem>``."""
    content = yaml.safe_load(kernel.problem_path.read_text(encoding="utf-8"))
    known = content.get("parameters") or {}
    chosen = {name: value for name, value in parameters.items() if name in known}
    target = folder / kernel.application / kernel.stem
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=target) as cache:
            usual = kernel.local_sizes[0]
            local_size = tuple(chosen.get(f"LOCAL{axis}", one) for axis, one in enumerate(usual))
            prepared = prepare_launch(
                kernel, chosen, local_size=local_size, cache_folder=Path(cache)
            )
            if prepared.inputs_folder is not None:
                for path in prepared.inputs_folder.glob("*.npy"):
                    path.replace(target / path.name)
        content["parameters"] = {**known, **prepared.replaced}
        if "source" in content:
            source = kernel.problem_path.parent / content["source"]
            shutil.copyfile(source, target / source.name)
        path = target / kernel.problem_path.name
        text = yaml.safe_dump(content, sort_keys=False, width=100)
        header = (
            f"# {kernel.name} of kernelcast's corpus, with its inputs made for these parameters."
        )
        path.write_text(f"{header}\n{text}", encoding="utf-8")
        return path
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error


def find_difference(
    run: tuple[Values, Values], reference: Reference, parameters: Mapping[str, int]
) -> str | None:
    """Say where a run differs from its reference, or None."""
    given: list[Value] = [None if value is None else np.copy(value) for value in run[0]]
    wanted = reference.expected(given, parameters)
    if not wanted:
        return "the reference wants nothing"
    for index, (before, found) in enumerate(zip(*run, strict=True)):
        if not isinstance(before, np.ndarray) or not isinstance(found, np.ndarray):
            continue
        is_named = index in wanted
        expected = np.asarray(wanted[index] if is_named else before).ravel()
        where, found = f"argument {index}: {'' if is_named else 'was changed: '}", found.ravel()
        if found.dtype != expected.dtype or found.size != expected.size:
            return (
                f"{where}the reference gives {expected.size} values of {expected.dtype}, the "
                f"buffer holds {found.size} of {found.dtype}"
            )
        try:
            if not is_named or reference.tolerance == 0.0 or found.dtype.kind in "iu":
                np.testing.assert_array_equal(found, expected, verbose=False)
            else:
                finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
                # near zero the values' own scale counts, not the element's
                near = reference.tolerance * (float(finite.mean()) if finite.size else 0.0)
                np.testing.assert_allclose(
                    found, expected, rtol=reference.tolerance, atol=near, verbose=False
                )
        except AssertionError as error:
            return f"{where}{' '.join(str(error).split())}"
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
    session = open_device(device_id)
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
    entry="kernelcast.collection.corpus_problems:check_corpus", gives=CheckOutcome
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
