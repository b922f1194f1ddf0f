"""Reads observations from stores and Parquet files alike."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelcast.launches.data_store import open_data_store
from kernelcast.records.errors import InputError
from kernelcast.records.observation import Observation
from kernelcast.training_data.parquet.reader import read_parquet
from kernelcast.training_data.sources import PARQUET_ENDING, SourceKind, recognise_source
from kernelcast.training_data.store import Selection
from kernelcast.training_data.store.selection import SOUND


def read_observations(
    sources: Sequence[str | Path] = (),
    *,
    devices: Sequence[str] = (),
) -> Iterator[Observation]:
    """Give observations one by one, without first launches, outliers and those of busy machines.

    Parameters
    ----------
    sources : sequence of str or Path
        Store files, URLs of stores, Parquet files, folders of them; none means the user's store.
    devices : sequence of str
        Ids of devices or their beginnings; none means all.
    """
    wanted = Selection(devices=tuple(devices), without_flags=SOUND.without_flags)
    for source in sources or (None,):
        files = [] if source is None else _find_files(source)
        if not files:
            with open_data_store(source, must_exist=True) as store:
                yield from store.find(wanted)
        for file in files:
            yield from (one for one in read_parquet(file) if _matches(one, wanted))


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


def _matches(one: Observation, wanted: Selection) -> bool:
    device = one.launch.device.id
    is_wanted = not wanted.devices or device.startswith(wanted.devices)
    return is_wanted and not one.flags & wanted.without_flags
