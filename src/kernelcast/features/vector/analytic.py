"""Features that analytic models of a device tell: times of limiters, volumes, oversubscription."""

from collections.abc import Callable

from kernelcast.features.vector.definitions import Feature, divide
from kernelcast.records.analytic_estimate import AnalyticEstimate

Formula = Callable[[AnalyticEstimate], float | None]

_LIMITERS = {
    "fp32": "fp32 arithmetic",
    "fp64": "fp64 arithmetic",
    "int": "integer arithmetic",
    "special": "special functions",
    "L1": "the L1 caches, accesses and arriving sectors",
    "L2": "transfers between L1 and L2",
    "L3": "transfers between L2 and L3, on CPUs",
    "DRAM": "transfers between the last cache and memory",
    "latency": "waiting for loads one after the other, without traffic",
    "chain": "waiting for the result of the operation before, on CPUs",
    "local": "local memory with its bank conflicts",
    "atomics": "global atomics",
    "barriers": "barriers",
    "dispatch": "starting work-groups",
    "translation": "address translations that do not fit",
    "tail": "the last work-groups, while compute units idle",
    "launch": "starting the launch",
}
_QUANTITIES = {
    "l1_cycles_per_warp": "cycles of the L1 cache for all accesses of a warp",
    "l1_lines_per_warp": "lines of the L1 cache that the loads of a warp look up",
    "l1_load_requests_per_warp": "loads that a warp executes",
    "l1_store_requests_per_warp": "stores that a warp executes",
    "l1_allocated_bytes_per_work_group": "lines of the L1 cache that a work-group's loads touch",
    "l1_oversubscription_ratio": "lines that several warps need over the capacity of the L1 cache",
    "l2_load_bytes_per_work_group": "bytes from L2 to L1",
    "l2_store_bytes_per_work_group": "bytes from L1 to L2",
    "l2_oversubscription_ratio": "bytes that a wave touches over the capacity of L2",
    "l3_load_bytes_per_work_group": "bytes from L3 to L2, on CPUs",
    "l3_store_bytes_per_work_group": "bytes from L2 to L3, on CPUs",
    "dram_load_bytes_per_work_group": "bytes from DRAM to the last cache",
    "dram_store_bytes_per_work_group": "bytes from the last cache to DRAM",
    "reused_bytes_per_work_group": "loads that find in L2 what earlier waves left",
    "pages_of_wave_count": "pages of 2 MiB that a wave touches",
    "work_groups_per_compute_unit": "work-groups that a compute unit holds at once",
    "waves_count": "work-groups over those that the device holds at once",
    "exposed_l1_s": "time of L1 that transfers with DRAM wait for",
    "vector_work_items_count": "work-items in the lanes of a vector, on CPUs",
    "mwp_cwp_s": "time of the launch by Hong and Kim's model, to compare with: no learned model "
    "sees it",
}
_TABLE_1 = {
    "l1_miss_ratio": "L1 misses over issued instructions",
    "l2_miss_ratio": "L2 misses over issued instructions",
}


def _time(limiter: str) -> Formula:
    return lambda estimate: estimate.limiters.get(limiter)


def _quantity(name: str) -> Formula:
    return lambda estimate: estimate.quantities.get(name)


def _largest_share(estimate: AnalyticEstimate) -> float | None:
    return divide(max(estimate.limiters.values()), estimate.seconds)


FEATURES: tuple[Feature[AnalyticEstimate], ...] = (
    *(
        Feature(f"analytic.{name}", f"{text}; absent where executed instructions are not counted",
                _quantity(name), table_1="L1/L2 miss rate")
        for name, text in _TABLE_1.items()
    ),
    Feature("analytic.estimate_s", "time of the launch by the analytic model of the device",
            lambda estimate: estimate.seconds),
    Feature("analytic.largest_limiter_ratio",
            "time of the largest limiter alone over that estimate", _largest_share),
    *(
        Feature(f"analytic.{name.lower()}_limiter_s",
                f"time that {text} would take alone; absent where the model has no such part",
                _time(name))
        for name, text in _LIMITERS.items()
    ),
    *(
        Feature(f"analytic.{name}", text, _quantity(name))
        for name, text in _QUANTITIES.items()
    ),
)  # fmt: skip
"""In the order of the schema."""
