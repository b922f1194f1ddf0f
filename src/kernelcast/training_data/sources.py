"""Decides what a source of observations is, and reads files of every kind."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
    from kernelcast.training_data.parquet import is_observation_file, read_parquet  # needs an extra

    if is_observation_file(path):
        return SourceFile(kind="observations", observations=read_parquet(path))
    found = find_data_set(path)
    return SourceFile(kind=found.name, observations=found.read(path), licence=found.licence)


def list_files(source: str | Path) -> list[Path]:
    """List the files of a source; none where it is a store."""
    path = Path(source)
    if "://" in str(source) or not path.exists():
        return []
    if path.is_dir():
        files = sorted(path.rglob(f"*{PARQUET_ENDING}"))
        if not files:
            raise InputError(
                f"{path}: no Parquet files are in this folder; `kernelcast data export` writes them"
            )
        return files
    if is_database(path):  # as an empty file may become
        is_empty = path.stat().st_size == 0 and path.suffix == PARQUET_ENDING
        return [path] if is_empty else []
    from kernelcast.training_data.parquet import is_observation_file  # needs an extra

    # Any other file is opened as a store too, which says what is wrong with it.
    is_file = path.suffix in {PARQUET_ENDING, CSV_ENDING, _TUNING_ENDING}
    return [path] if is_file or is_observation_file(path) else []
