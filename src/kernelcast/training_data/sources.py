"""Decides what a source of observations is."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from kernelcast.training_data.store.connecting import is_database

PARQUET_ENDING = ".parquet"
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
