"""Brings observations in from files and other stores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.records.errors import InputError
from kernelcast.records.observation import FailureRecord, Observation
from kernelcast.training_data.importers import TuningFiles, find_data_set, read_tuning
from kernelcast.training_data.sources import SourceKind, recognise_source
from kernelcast.training_data.store import AddedRows, Store

Report = Callable[[str], None]
_REPORT_EVERY = 1000
_JSON = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """A file to import, and what it does not say itself."""

    path: Path
    """Parquet of `kernelcast data export`, a public data set, a table of one's own (CSV or
    Parquet), or a tuner's results (T4 JSON)."""
    replace: bool = False
    """Whether observations of the file replace those with the same key."""
    problem: Path | None = None
    """The tuner's input (T1 JSON)."""
    device: str | None = None
    """Name of the device a tuner ran on, where its files do not say it."""
    time_unit: str | None = None
    """Unit of a tuner's run times, where its files do not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOutcome:
    """What became of a file."""

    path: Path
    kind: str
    licence: str
    """Under which its data may be used; empty for data of one's own."""
    rows: AddedRows
    """How many observations were new."""
    failures: int = 0
    """Invalid launches that were recorded."""


def import_file(
    store: Store, request: ImportRequest, *, report: Report = lambda _: None
) -> ImportOutcome:
    """Add what a file holds to a store; an error leaves the store as it was."""
    path = request.path
    if not path.is_file():
        msg = f"{path}: there is no such file"
        raise InputError(msg)
    if path.suffix.lower() == _JSON:
        return _import_tuning(store, request)
    if recognise_source(path) is SourceKind.OBSERVATIONS:
        from kernelcast.training_data.parquet import import_parquet  # needs an extra

        rows = import_parquet(
            store, path, replace=request.replace, report=lambda n: report(f"{n:,} rows")
        )
        return ImportOutcome(path=path, kind="observations", licence="", rows=rows)
    found = find_data_set(path)
    observations = _count(found.read(path), report)
    rows = store.add_many(observations, replace=request.replace)
    return ImportOutcome(path=path, kind=found.name, licence=found.licence, rows=rows)


def merge_stores(
    target: Store,
    sources: Sequence[Store],
    *,
    replace: bool = False,
    report: Report = lambda _: None,
) -> list[AddedRows]:
    """Add the observations and failures of other stores, each store in one transaction."""
    for one in sources:
        if one.is_same_as(target):
            msg = f"{one.where}: is the store to merge into; name another"
            raise InputError(msg)
    added = []
    for one in sources:
        added.append(target.add_many(_count(one.find(), report), replace=replace))
        target.add_failures(one.failures())
    return added


def _import_tuning(store: Store, request: ImportRequest) -> ImportOutcome:
    found = read_tuning(TuningFiles(
        results=request.path,
        problem=request.problem,
        device=request.device,
        time_unit=request.time_unit,
    ))  # fmt: skip
    rows = store.add_many(found.observations, replace=request.replace)
    failures: tuple[FailureRecord, ...] = found.failures
    store.add_failures(failures)
    return ImportOutcome(
        path=request.path, kind="t4", licence="", rows=rows, failures=len(failures)
    )


def _count(observations: Iterable[Observation], report: Report) -> Iterator[Observation]:
    for number, one in enumerate(observations, start=1):
        if number % _REPORT_EVERY == 0:
            report(f"{number:,} rows")
        yield one
