"""What `simulated_gpu.py` learns: an epsilon-SVR over the samples' features, kernels left out."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from simulated_gpu_cases import Case, Sample, correct

from kernelcast.models.time_models import TimeModel
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable, make_table
from support.simulated_gpu.runs import CLOCK_HZ

GROUPS = ("sampled", "counters", "analytic")


def describe(case: Case, sample: Sample, cases: Sequence[Case]) -> Mapping[str, float]:
    """Give what a model is told of a sample: its timeline, counters and volumes.

    Times are in units of what one P_sat of mean work-groups takes, counts per cycle.
    """
    corrected = correct(case, sample, cases)
    run, unit = sample.run, case.unit
    wave = corrected.rate_s * unit
    cycles = corrected.rate_s * sample.work
    units = case.kernel.gpu.compute_units
    counted = run.counters
    moved = corrected.loaded_bytes + corrected.written_bytes
    return {
        "sampled.intercept_ratio": (sample.cycles - cycles) / wave,
        "sampled.first_end_ratio": run.cycle_at(unit / 4) / wave,
        "sampled.wave_spread_ratio": (run.cycle_at(unit) - run.cycle_at(unit / 4)) / wave,
        "sampled.tail_ratio": (run.cycles - run.cycle_at(run.work_groups - unit / 2)) / wave,
        "counters.issue_ratio": counted["warp_instructions"] / cycles / units,
        "counters.l1_accesses_ratio": counted["l1_accesses"] / cycles / units,
        "counters.l2_accesses_ratio": counted["l2_accesses"] / cycles,
        "counters.l2_hit_ratio": 1 - counted["l2_misses"] / max(1, counted["l2_accesses"]),
        "analytic.dram_share_ratio": corrected.dram_s / corrected.rate_s,
        "analytic.write_share_ratio": corrected.written_bytes / moved if moved else 0.0,
        "analytic.correction_ratio": corrected.rate_s / sample.rate,
    }


def make_rows(
    cases: Sequence[Case], samples: Sequence[Sample], *, is_corrected: bool
) -> TrainingTable:
    """Make a table of all kernels: features, the time to correct, and the true one."""
    features = [describe(*pair, cases) for pair in zip(cases, samples, strict=True)]
    schema = FeatureSchema(names=tuple(features[0]), version=1)
    linear = [
        correct(case, sample, cases).seconds if is_corrected else sample.reach(case.total)
        for case, sample in zip(cases, samples, strict=True)
    ]
    return make_table(
        schema,
        [list(one.values()) for one in features],
        {
            "keys": [case.kernel.name for case in cases],
            "kernels": [case.kernel.name for case in cases],
            "seconds": [case.whole.cycles / CLOCK_HZ for case in cases],
            "linear_s": np.array(linear) / CLOCK_HZ,
        },
    )


def predict_left_out(table: TrainingTable, *, is_gated: bool) -> npt.NDArray[np.float64]:
    """Predict each kernel by a model that learned from all others, in seconds.

    Settings and gate are chosen within the others.
    """
    model = TimeModel(name="svr", learner="svr", feature_groups=GROUPS, is_gated=is_gated)
    found = np.empty(len(table))
    for kernel in sorted(set(table.kernels)):
        is_left_out = table.kernels == kernel
        found[is_left_out] = model.fit(table.take(~is_left_out)).predict(table.take(is_left_out))
    return found
