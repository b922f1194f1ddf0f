"""Reads observations from stores and Parquet files alike, and says which do not count."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from kernelcast.launches.data_folder import choose_store
from kernelcast.launches.data_store import open_data_store
from kernelcast.records.errors import InputError
from kernelcast.records.observation import Observation
from kernelcast.training_data.parquet import read_parquet
from kernelcast.training_data.sources import (
    PARQUET_ENDING,
    SHIPPED,
    SourceKind,
    name_folders,
    recognise_source,
)
from kernelcast.training_data.store import Selection
from kernelcast.training_data.store.selection import SOUND


def read_observations(
    sources: Sequence[str | Path] = (),
    *,
    devices: Sequence[str] = (),
    left_out: Counter[str] | None = None,
) -> Iterator[Observation]:
    """Give observations one by one, without first launches, outliers and those of busy machines.

    Parameters
    ----------
    sources : sequence of str or Path
        Store files, URLs of stores, Parquet files, folders of them, or ``shipped`` for what comes
        with the package; none means the user's store.
    devices : sequence of str
        Ids of devices or their beginnings; none means all.
    left_out : Counter, optional
        Counts the observations that are left out by the reason.
    """
    wanted = Selection(devices=tuple(devices))
    for source in name_folders(sources) or (None,):
        files = [] if source is None else _find_files(source)
        if files:
            found = chain.from_iterable(map(read_parquet, files))
            yield from _choose(found, wanted, left_out)
            continue
        with open_data_store(source, must_exist=True) as store:
            yield from _choose(store.find(wanted), wanted, left_out)


def choose_sources(
    sources: Sequence[str | Path], tell: Callable[[str], None]
) -> Sequence[str | Path]:
    """Choose what is read where none is named: the user's store, else what is shipped."""
    if sources:
        return sources
    place = choose_store()
    if "://" in str(place) or Path(place).is_file():
        with open_data_store(place) as store:
            if any(one.samples and one.features for one in islice(store.find(SOUND), 100)):
                return (place,)
    tell(f"{place} has no rows to judge by: the observations that are shipped are taken")
    return (SHIPPED,)


def _find_files(source: str | Path) -> list[Path]:
    """Give the Parquet files of a source; none where it is a store."""
    kind, path = recognise_source(source), Path(source)
    if kind is not SourceKind.FOLDER:
        # Any other file is opened as a store too, which says what is wrong with it.
        return [path] if kind in {SourceKind.OBSERVATIONS, SourceKind.PARQUET} else []
    files = sorted(path.rglob(f"*{PARQUET_ENDING}"))
    if not files:
        msg = f"{path}: no Parquet files are in this folder; `kernelcast data export` writes them"
        raise InputError(msg)
    return files


def _choose(
    found: Iterator[Observation], wanted: Selection, left_out: Counter[str] | None
) -> Iterator[Observation]:
    for one in found:
        flags = one.flags & SOUND.without_flags
        if wanted.devices and not one.launch.device.id.startswith(wanted.devices):
            continue
        if not flags:
            yield one
        elif left_out is not None:
            left_out[f"flagged as {', '.join(sorted(flags))}"] += 1
