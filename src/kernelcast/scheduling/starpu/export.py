"""Writes StarPU's performance models from predictions."""

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.records.errors import InputError
from kernelcast.records.private_files import written_whole
from kernelcast.scheduling.starpu.codelet_file import Codelet, CodeletWorker
from kernelcast.scheduling.starpu.model_text import FORMAT, write_model
from kernelcast.scheduling.starpu.records import CodeletModel, Entry, Worker
from kernelcast.scheduling.starpu.times import ExpectedTime, TimeSource, Wanted

LEAST_SAMPLES = 10
"""``STARPU_CALIBRATE_MINIMUM``: with fewer, StarPU calibrates instead of believing."""
_LONGEST_PATH = 255
_HOMES = ("XDG_CACHE_HOME", "STARPU_HOME", "HOME")  # StarPU 1.3.10, src/common/utils.c


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTime:
    """One time of an exported model."""

    wanted: Wanted
    time: ExpectedTime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedModel:
    """A performance model with what its times come from."""

    model: CodeletModel
    times: tuple[ExportedTime, ...]


def make_model(
    codelet: Codelet,
    sources: Sequence[TimeSource],
    *,
    samples: int = LEAST_SAMPLES,
    report: Callable[[Wanted], None] = lambda _: None,
) -> ExportedModel:
    """Find every time of a codelet.

    Parameters
    ----------
    codelet : Codelet
        Sizes and workers.
    sources : sequence of TimeSource
        Asked in this order; the first that has a time gives it.
    samples : int
        Measurements that each time counts as: StarPU believes ten, and discards a time after as
        many contradicting measurements.
    report : callable, optional
        Is told of each time before it is looked for.
    """
    found: list[ExportedTime] = []
    entries: dict[Worker, tuple[Entry, ...]] = {}
    for place in codelet.workers:
        times = []
        for wanted in _list_wanted(codelet, place):
            report(wanted)
            times.append(ExportedTime(wanted=wanted, time=_find(wanted, sources)))
        entries[place.worker] = tuple(_make_entry(one, samples) for one in times)
        found += times
    model = CodeletModel(symbol=codelet.symbol, entries=entries)
    return ExportedModel(model=model, times=tuple(found))


def default_folder() -> Path:
    """Give the folder of StarPU's measurements: STARPU_PERF_MODEL_DIR or ``~/.starpu/sampling``."""
    named = os.environ.get("STARPU_PERF_MODEL_DIR")
    if named:
        return Path(named)
    for variable in _HOMES:
        home = os.environ.get(variable)
        if home:
            return Path(home) / ".starpu" / "sampling"
    msg = f"StarPU's folder is not known: none of STARPU_PERF_MODEL_DIR, {', '.join(_HOMES)} is set"
    raise InputError(msg)


def default_host() -> str:
    """Give the name that this machine's files have: STARPU_HOSTNAME, or the host's up to a dot."""
    return os.environ.get("STARPU_HOSTNAME") or socket.gethostname().partition(".")[0]


def save_model(model: CodeletModel, folder: Path, *, host: str) -> Path:
    """Write a performance model where StarPU looks for it."""
    path = folder / "codelets" / str(FORMAT) / f"{model.symbol}.{host}"
    if len(str(path.absolute())) > _LONGEST_PATH:
        msg = f"{path}: StarPU reads paths of up to {_LONGEST_PATH} letters; shorten the folder"
        raise InputError(msg)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # In one step: a StarPU program that starts meanwhile finds the old file or the new one.
        with written_whole(path) as partial:
            partial.write_text(write_model(model), encoding="ascii")
    except OSError as error:
        msg = f"{path}: the performance model cannot be written: {error.strerror or error}"
        raise InputError(msg) from error
    return path


def _list_wanted(codelet: Codelet, place: CodeletWorker) -> list[Wanted]:
    problems = place.problems or (None,) * len(codelet.sizes)
    return [
        Wanted(
            symbol=codelet.symbol,
            worker=place.worker,
            size=size,
            device_id=place.device_id,
            problem=problem,
        )
        for size, problem in zip(codelet.sizes, problems, strict=True)
    ]


def _find(wanted: Wanted, sources: Sequence[TimeSource]) -> ExpectedTime:
    for one in sources:
        found = one.find(wanted)
        if found is not None:
            return found
    hint = (
        "it has no `problem`; give its times by --times"
        if wanted.problem is None
        else "give --estimates with this size, --store with observations of it, or neither"
    )
    msg = f"{wanted.label}: no time is known; {hint}"
    raise InputError(msg)


def _make_entry(one: ExportedTime, samples: int) -> Entry:
    return Entry(
        footprint=one.wanted.size.footprint,
        size_bytes=one.wanted.size.size_bytes,
        seconds=one.time.seconds,
        deviation_s=one.time.deviation_s,
        flops=one.wanted.size.flops,
        samples=samples,
    )
