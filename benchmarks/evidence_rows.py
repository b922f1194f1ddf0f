"""Stored launches as evidence: which of their samples stand for a moment, and what they say raw.

The order of a row's measurements (`kernelcast.collection.row`): the sampler's set 0; one whole
run that is not kept; then pairs of set 0 (multiples 1 to 5, one after another), a run, the
sampler's set 1, a run, pairs of set 1, a run, the sampler's set 2, the other runs. Each is a
moment of its own.
Only the sampler's set 0 was taken before the kernel had run as a whole.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelcast.models.evidence.calibration import EvidenceRow
from kernelcast.models.evidence.moments import SampledMoment, read_moment
from kernelcast.models.evidence.piece import Kind
from kernelcast.models.evidence.sizes import KnownSize
from kernelcast.models.linear import fit_linear
from kernelcast.records.observation import Observation
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training_data.parquet.reader import read_parquet

SHORTEST_S = 0.1
LEAST_WORK_GROUPS = 256
Key = tuple[int, int]
"""Multiple and window set of a set of samples; the sampler's own have multiple 0."""
MOMENTS = {0: ("before any run", "after two runs", "after four runs"),
           1: ("after one run", "after three runs")}  # fmt: skip
LINES: Mapping[str, tuple[Key, ...]] = {
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
class Stored:
    """A stored launch.

    Parameters
    ----------
    observation : Observation
        The row.
    kernel : str
        Suite, application and kernel.
    line_s, cost : mapping
        Of each set of samples: seconds by today's line, and its launches' time over the whole's.
    """

    observation: Observation
    kernel: str
    line_s: Mapping[Key, float]
    cost: Mapping[Key, float]
    features: Mapping[str, float]

    @property
    def is_even(self) -> bool:
        """What the sampler's first set has found, by its pilot or from the source."""
        return self.observation.samples[0].is_even

    @property
    def pilot_cost(self) -> float:
        """Time of the pilot's launches over the whole's."""
        launches = self.observation.samples[0].launches
        return sum(one.duration_s for one in launches if one.window < 0) / self.observation.seconds


def read_stored(path: Path) -> list[Stored]:
    """Read undisturbed rows of today's sampler, long and large enough."""
    return [_read(one) for one in read_parquet(path) if _counts(one)]


def _counts(one: Observation) -> bool:
    ndrange = one.launch.ndrange
    return (
        one.sampler >= SAMPLER
        and bool(one.samples)
        and not one.flags
        and one.seconds >= SHORTEST_S
        and ndrange is not None
        and ndrange.work_group_count >= LEAST_WORK_GROUPS
    )


def _read(one: Observation) -> Stored:
    kernel = one.launch.kernel
    lines, costs = {}, {}
    for place, sample in enumerate(one.samples):
        if sample.linear_s:
            key = (sample.multiple, sample.window_set)
            lines[key] = fit_linear(one.sample_run(place)).seconds
            costs[key] = sample.sampling_s / one.seconds
    features = one.features
    named = dict(zip(features.names, features.values, strict=True)) if features else {}
    return Stored(
        observation=one,
        kernel=f"{kernel.suite}/{kernel.application}/{kernel.name}",
        line_s=lines,
        cost=costs,
        features={name: value for name, value in named.items() if math.isfinite(value)},
    )


def choose_first(row: Stored) -> tuple[Key, ...]:
    """Give the one set that was taken before the kernel had run."""
    del row
    return ((0, 0),)


def choose_two_moments(row: Stored) -> tuple[Key, ...]:
    """Give pairs of 3 and 4 units at two moments; the sampler's sets where work is uneven."""
    pairs: tuple[Key, ...] = ((3, 0), (3, 1))
    if row.is_even and all(one in row.line_s for one in pairs):
        return pairs
    return ((0, 0), (0, 1))


def choose_paper(row: Stored) -> tuple[Key, ...]:
    """Give pairs of 2 and 3 units at two moments, whatever the work."""
    pairs: tuple[Key, ...] = ((2, 0), (2, 1))
    return pairs if all(one in row.line_s for one in pairs) else ((0, 0), (0, 1))


def make_row(row: Stored, keys: Sequence[Key]) -> EvidenceRow:
    """Make evidence of a row and of some of its sets."""
    one = row.observation
    return EvidenceRow(
        kernel=row.kernel,
        size=_size(row),
        moments=tuple(_moment(row, key) for key in keys),
        plain=_plain(row),
        runs=tuple(np.log(one.runs.durations_s).tolist()),
    )


def _moment(row: Stored, key: Key) -> SampledMoment:
    place = next(
        place for place, one in enumerate(row.observation.samples)
        if (one.multiple, one.window_set) == key
    )  # fmt: skip
    form = "pair" if key[0] else ("first set" if key[1] == 0 else "set")
    return read_moment(
        row.observation.sample_run(place),
        moment=MOMENTS[min(key[0], 1)][key[1]],
        form=form,
        imbalance=row.features.get("counters.loop_imbalance_ratio", math.nan),
        indirect=row.features.get("static.indirect_access_ratio", 0.0),
    )


def _size(row: Stored) -> KnownSize:
    found, one = row.features, row.observation
    items = found["static.work_items_count"]
    moved = [found.get(f"counters.global_{kind}_bytes_per_work_item", math.nan)
             for kind in ("load", "store")]  # fmt: skip
    works = (
        items,
        items * found.get("counters.issued_instructions_per_work_item", math.nan),
        items * sum(moved),
        found.get("analytic.estimate_s", math.nan),
    )
    return KnownSize(
        log_work=tuple(math.log(work) if work > 0 else math.nan for work in works),
        log_seconds=math.log(one.seconds),
        noise=one.runs.noise or 0.0,
        at_s=one.measured_at.timestamp() if one.measured_at else 0.0,
        working_set_bytes=found.get("static.buffer_bytes", math.nan),
    )


def _plain(row: Stored) -> dict[Kind, float]:
    told = row.features.get("analytic.estimate_s", math.nan)
    return {Kind.ANALYTIC: math.log(told)} if told > 0 else {}


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


def load_json(path: Path) -> dict[str, object]:
    """Read a result file."""
    found: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return found
