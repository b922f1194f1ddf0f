"""How observations are collected."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelcast.records.errors import InputError

if TYPE_CHECKING:
    from kernelcast.training_data.applications import CorpusKernel


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSettings:
    sizes: int = 8
    local_sizes: int = 3
    """Local sizes of each kernel at most: the usual one at every size, others at every other."""
    shortest_s: float = 0.1
    longest_s: float = 0.5
    """Range of the whole launches' times that sizes are chosen for, in seconds. The paper's kernels
    take at least 0.1 s."""
    least_work_groups: int = 256
    runs: int = 5
    """Whole runs of each launch; as many again where they disagree."""
    multiples: int = 0
    """Sampling points up to this multiple of saturation and its successor (Fig. 15: 1,2 to 5,6)."""
    counts: bool = True
    """Whether an instrumented copy of the kernel is run to count; else the source tells counts."""
    window_sets: int = 2
    """Choices of places that each of them is sampled at."""
    most_noise: float = 0.05
    worst_noise: float = 0.1
    """Noise of all whole runs above which a row counts as contaminated and is measured again."""
    most_others: float = 0.15
    """Processors that others may keep busy meanwhile; beyond, a row counts as contaminated too."""
    seed: int = 0
    too_long: float | None = None
    """Launches foretold to last more than so many times `longest_s` are left out; None: none."""
    row_timeout_s: float = 120.0

    def foretell_s(self, kernels: "Sequence[CorpusKernel]") -> float:
        """Foretell what a collection of kernels takes on a device, within a factor of two or so."""
        run_s = math.sqrt(self.shortest_s * self.longest_s)
        row_s = (self.runs + 1) * run_s + 2.0 + 0.2 * self.multiples * self.window_sets
        rows = 0.0
        for one in kernels:
            sizes = len(one.sizes) or self.sizes
            others = len(one.local_sizes[: self.local_sizes]) - 1
            rows += sizes + others * -(-sizes // 2) + (0 if one.sizes else 2)
        return rows * row_s

    def __post_init__(self) -> None:
        least = {"sizes": 1, "local_sizes": 1, "runs": 1, "least_work_groups": 1, "multiples": 0,
                 "window_sets": 0, "seed": 0}  # fmt: skip
        for name, limit in least.items():
            if getattr(self, name) < limit:
                what = name.removeprefix("least_").replace("_", " ").replace("work ", "work-")
                msg = f"{what} {getattr(self, name)}: give a whole number of at least {limit}"
                raise InputError(msg)
        if not 0 < self.shortest_s < self.longest_s:
            msg = f"times {self.shortest_s} to {self.longest_s} s: give 0 < shortest < longest"
            raise InputError(msg)
        for name in ("most_noise", "worst_noise", "most_others", "row_timeout_s", "too_long"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                what = name.removesuffix("_s").replace("_", " ")
                raise InputError(f"{what} {value}: give a number above 0")
