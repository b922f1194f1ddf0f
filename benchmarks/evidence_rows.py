"""Stored launches as the benchmark of evidence asks them: other choices of sets, and raw lines."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelcast.models.linear import fit_linear
from kernelcast.training.evidence import SetKey, StoredLaunch, read_launches
from kernelcast.training.settings import RowFilter
from kernelcast.training_data.parquet import read_parquet

LINES: Mapping[str, tuple[SetKey, ...]] = {
    "the sampler's set 0": ((0, 0),),
    "the sampler's set 1": ((0, 1),),
    "pairs of 2 and 3 units, two moments": ((2, 0), (2, 1)),
    "pairs of 4 and 5 units, two moments": ((4, 0), (4, 1)),
    "all sets but the first, 3 units and more": (
        (0, 1), (0, 2), *((multiple, one) for multiple in (3, 4, 5) for one in (0, 1)),
    ),
}  # fmt: skip
"""Lines of the table that nothing is fitted for: the median of what these sets say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored(StoredLaunch):
    """A stored launch with what each set of its samples says and costs.

    Parameters
    ----------
    line_s, cost : mapping
        Of each set of samples: seconds by today's line, and its launches' time over the whole's.
    """

    line_s: Mapping[SetKey, float]
    cost: Mapping[SetKey, float]

    @property
    def pilot_cost(self) -> float:
        """Time of the pilot's launches over the whole's."""
        launches = self.observation.samples[0].launches
        return sum(one.duration_s for one in launches if one.window < 0) / self.observation.seconds


def read_stored(path: Path) -> list[Stored]:
    """Read undisturbed rows of the file's newest sampler, long and large enough."""
    return [_read(one) for one in read_launches(read_parquet(path), RowFilter())]


def _read(row: StoredLaunch) -> Stored:
    one, places = row.observation, row.places.items()
    return Stored(
        observation=one,
        kernel=row.kernel,
        places=row.places,
        features=row.features,
        line_s={key: fit_linear(one.sample_run(place)).seconds for key, place in places},
        cost={key: one.samples[place].sampling_s / one.seconds for key, place in places},
    )


def choose_first(row: StoredLaunch) -> tuple[SetKey, ...]:
    """Give the one set that was taken before the kernel had run."""
    del row
    return ((0, 0),)


def choose_paper(row: StoredLaunch) -> tuple[SetKey, ...]:
    """Give pairs of 2 and 3 units at two moments, whatever the work."""
    pairs: tuple[SetKey, ...] = ((2, 0), (2, 1))
    return pairs if all(one in row.places for one in pairs) else ((0, 0), (0, 1))


def tell_raw(rows: Sequence[Stored]) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Give name, rows, errors in ln and costs of the lines that nothing is fitted for."""
    for name, keys in LINES.items():
        places, errors, costs = [], [], []
        for place, row in enumerate(rows):
            chosen = [key for key in keys if key in row.line_s]
            if chosen:
                told = np.log([row.line_s[key] for key in chosen])
                places.append(place)
                errors.append(float(np.median(told)) - math.log(row.observation.seconds))
                costs.append(sum(row.cost[key] for key in chosen))
        yield name, np.array(places), np.array(errors), np.array(costs)


def tell_whole_runs(rows: Sequence[Stored]) -> list[np.ndarray]:
    """Give, of each row, what each whole run says of the median of the others, in ln."""
    found = []
    for row in rows:
        runs = np.log(row.observation.runs.durations_s)
        found.append(np.array(
            [runs[one] - np.median(np.delete(runs, one)) for one in range(len(runs))]
            if len(runs) > 2 else []
        ))  # fmt: skip
    return found


def group(rows: Sequence[Stored]) -> dict[str, list[int]]:
    """Give places of rows by kernel."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        found[row.kernel].append(place)
    return found
