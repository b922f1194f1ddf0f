"""How much a launch does, by its features; answers need it, so nothing heavy is imported."""

import math
from collections.abc import Mapping


def measure_work(features: Mapping[str, float]) -> tuple[tuple[float, ...], float]:
    """Give the logarithms of measures of work, NaN where one is not known, and bytes touched.

    The measures are `kernelcast.models.evidence.sizes.MEASURES`.
    """
    items = features["static.work_items_count"]
    moved = [features.get(f"counters.global_{kind}_bytes_per_work_item", math.nan)
             for kind in ("load", "store")]  # fmt: skip
    # Where data end a loop, counts are those of the few work-groups that were looked at.
    is_counted = not features.get("static.uncounted_loops_count", 0.0)
    instructions = features.get("counters.issued_instructions_per_work_item", math.nan)
    works = (
        items,
        items * instructions if is_counted else math.nan,
        items * sum(moved),
        features.get("analytic.estimate_s", math.nan),
    )
    logs = tuple(math.log(work) if work > 0 else math.nan for work in works)
    return logs, features.get("static.buffer_bytes", math.nan)
