"""Decides what a source of observations is, and reads files of every kind."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kernelcast.records.errors import InputError
from kernelcast.records.observation import FailureRecord, Observation
from kernelcast.training_data.importers.tables import CSV_ENDING, find_data_set
from kernelcast.training_data.importers.tuning import TuningFiles, find_tuning_files, read_tuning
from kernelcast.training_data.store.connecting import is_database

PARQUET_ENDING = ".parquet"
_TUNING_ENDING = ".json"
SHIPPED = "shipped"
_SHIPPED = tuple(Path(__file__).parent / name for name in ("measured", "modelled"))


def name_folders(sources: Iterable[str | Path]) -> list[str | Path]:
    """Put the folders of what is shipped in the place of its name."""
    named = ([*_SHIPPED] if str(one) == SHIPPED else [one] for one in sources)
    return [place for one in named for place in one]


class SourceKind(StrEnum):
    STORE = "store"
    """A store, or what only opening it as a store can tell."""
    FOLDER = "folder"
    OBSERVATIONS = "observations"
    PARQUET = "parquet"
    """Another file that is named as Parquet: of another data set, damaged or empty."""
    OTHER = "other"


def recognise_source(source: str | Path) -> SourceKind:
    """Decide what a source is, without opening a database but by SQLite."""
    if "://" in str(source):
        return SourceKind.STORE
    path = Path(source)
    if path.is_dir():
        return SourceKind.FOLDER
    if not path.is_file():
        return SourceKind.STORE
    otherwise = SourceKind.PARQUET if path.suffix == PARQUET_ENDING else SourceKind.OTHER
    if is_database(path):
        is_bare = path.stat().st_size == 0 and otherwise is SourceKind.PARQUET
        return otherwise if is_bare else SourceKind.STORE
    from kernelcast.training_data.parquet import is_observation_file  # needs an extra

    return SourceKind.OBSERVATIONS if is_observation_file(path) else otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    kind: str
    """``observations``, ``t4``, ``table``, or the name of a public data set."""
    observations: Iterator[Observation]
    failures: list[FailureRecord] = field(default_factory=list)
    licence: str = ""
    """Under which its data may be used; empty for data of one's own."""


def read_file(path: Path, tuning: TuningFiles | None = None) -> SourceFile:
    """Read a file of `kernelcast data export`, a public data set, one's own table or T4 results."""
    if path.suffix.lower() == _TUNING_ENDING:
        measured, failures = read_tuning(tuning or find_tuning_files(path))
        return SourceFile(kind="t4", observations=iter(measured), failures=failures)
    if recognise_source(path) is SourceKind.OBSERVATIONS:
        from kernelcast.training_data.parquet import read_parquet  # needs an extra

        return SourceFile(kind="observations", observations=read_parquet(path))
    found = find_data_set(path)
    return SourceFile(kind=found.name, observations=found.read(path), licence=found.licence)


def list_files(source: str | Path) -> list[Path]:
    """List the files of a source; none where it is a store."""
    kind, path = recognise_source(source), Path(source)
    if kind is SourceKind.FOLDER:
        files = sorted(path.rglob(f"*{PARQUET_ENDING}"))
        if not files:
            raise InputError(
                f"{path}: no Parquet files are in this folder; `kernelcast data export` writes them"
            )
        return files
    # Any other file is opened as a store too, which says what is wrong with it.
    is_file = kind in {SourceKind.OBSERVATIONS, SourceKind.PARQUET} or (
        kind is SourceKind.OTHER and path.suffix in {CSV_ENDING, _TUNING_ENDING}
    )
    return [path] if is_file else []
