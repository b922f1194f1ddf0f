"""Files that sequences import and merge, made once."""

import json
from dataclasses import dataclass
from pathlib import Path

from kernelcast.testing.observations import make_observation
from kernelcast.testing.store_survival.grounds import work_apart
from kernelcast.training_data.parquet import export_parquet
from kernelcast.training_data.store import open_store

_FILES = 8
_ROWS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """Rows in a Parquet file and, the same ones, in a store."""

    parquet: Path
    store: Path
    keys: frozenset[str]


def make_supplies(folder: Path) -> list[Supply]:
    """Make the files, in a process of its own."""
    work_apart(lambda: _make(folder), folder)
    return [
        Supply(
            parquet=folder / f"rows{number}.parquet",
            store=folder / f"rows{number}.sqlite",
            keys=frozenset(json.loads((folder / f"rows{number}.json").read_text("utf-8"))),
        )
        for number in range(_FILES)
    ]


def _make(folder: Path) -> None:
    for number in range(_FILES):
        first = 1000 * (number + 1)
        rows = [make_observation(one) for one in range(first, first + _ROWS)]
        with open_store(folder / f"rows{number}.sqlite") as store:
            store.add_many(rows)
            export_parquet(store, folder / f"rows{number}.parquet")
        keys = json.dumps([one.key for one in rows])
        (folder / f"rows{number}.json").write_text(keys, encoding="utf-8")
