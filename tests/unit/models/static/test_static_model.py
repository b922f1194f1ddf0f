import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.static.describing import ESTIMATE, NAMES, Workload, classify, describe
from kernelcast.models.static.fitting import StaticRow, find_unseen, fit_static
from kernelcast.models.static.model import ANY
from kernelcast.models.static.stored import (
    RUNTIMES,
    find_shipped,
    load_shipped,
    name_runtime,
    static_from_json,
    static_to_json,
)
from kernelcast.records.errors import InputError

INSTRUCTIONS = "counters.executed_instructions_per_work_item"


def make_features(estimate_s: float, special: float) -> dict[str, float]:
    """Make features of a launch with a share of special functions."""
    return {
        ESTIMATE: estimate_s,
        "analytic.special_limiter_s": special * estimate_s,
        "analytic.dram_limiter_s": (1 - special) * estimate_s,
        "counters.fp32_special_per_work_item": 10 * special,
        INSTRUCTIONS: 100.0,
    }


DEVICE, RUNTIME = "a device", "a runtime"


def make_rows(
    kernels: int = 40, device: str = DEVICE, runtime: str = RUNTIME, slower: float = 1.0
) -> list[StaticRow]:
    """Make launches whose special functions take four times as long as modelled."""
    draw = np.random.default_rng(0)
    rows = []
    for kernel in range(kernels):
        special = draw.uniform()
        for estimate_s in 10.0 ** draw.uniform(-3, 1, 2):
            seconds = slower * estimate_s * 4.0**special * math.exp(draw.normal(0, 0.02))
            features = make_features(estimate_s, special)
            rows.append(
                StaticRow(
                    kernel=f"suite/application/{kernel}", features=features, seconds=seconds,
                    runtime=runtime, device=device,
                )
            )  # fmt: skip
    return rows


MODELS = fit_static(make_rows())
MODEL = MODELS[RUNTIME]


def correct(rows: list[StaticRow], name: str) -> float:
    """Give the correction of a model for a place to a launch with few special functions."""
    return fit_static(rows)[name].predict(make_features(0.3, 0.2)).correction


def test_tells_what_a_runtime_brings_from_what_all_bring() -> None:
    """What devices of a runtime share is the runtime's, and others keep their analytic times."""
    rows = [one for device in ("a1", "a2") for one in make_rows(device=device)]
    rows += [one for device in ("b1", "b2")
             for one in make_rows(device=device, runtime="b", slower=3.0)]  # fmt: skip
    assert correct(rows, "b") - correct(rows, RUNTIME) > 0.6 * math.log(3.0)
    assert correct(rows, ANY) == 0.0


def test_intervals_hold_how_much_devices_differ() -> None:
    """They are wider where devices differ, and widest on runtimes that nothing was measured on."""
    alike = [one for device in ("1", "2", "3") for one in make_rows(device=device)]
    differ = [
        one
        for number, slower in enumerate((0.3, 1.0, 2.0))
        for one in make_rows(device=str(number), runtime="b", slower=slower)
    ]
    models = fit_static([*alike, *differ])
    widths = [models[name].half_width for name in (RUNTIME, "b", ANY)]
    assert widths == sorted(widths)
    assert widths[1] > 2 * widths[0]


def test_corrections_that_help_no_unseen_kernel_are_held_back() -> None:
    """Of a kind of work whose errors no column tells, nothing is corrected."""
    draw = np.random.default_rng(1)
    noisy = [
        replace(
            one,
            kernel=f"suite/noisy/{place}",
            features={**one.features, "static.indirect_access_ratio": 0.5},
            seconds=one.features[ESTIMATE] * math.exp(draw.normal(0, 1.0)),
        )
        for place, one in enumerate(make_rows())
    ]
    model = fit_static([*make_rows(), *noisy])[RUNTIME]
    assert model.gates[Workload.SPARSE.value] == 0.0 < 0.5 < model.gates[Workload.SPECIAL.value]
    sparse = {**make_features(0.3, 0.6), "static.indirect_access_ratio": 0.5}
    answers = [model.predict(one) for one in (sparse, make_features(0.3, 0.6))]
    assert [one.workload for one in answers] == [Workload.SPARSE, Workload.SPECIAL]
    assert answers[0].correction == 0.0 < answers[1].correction
    assert answers[0].log_seconds == pytest.approx(math.log(0.3) + answers[0].correction)


def test_what_is_left_out_is_not_known() -> None:
    """Errors on unseen devices lack what was measured on these devices."""
    rows = [*make_rows(device="slow", slower=8.0), *make_rows(device="usual")]
    unseen = find_unseen(rows)
    is_slow = unseen.devices == "slow"
    errors = unseen.targets - unseen.corrections
    assert np.median(errors[is_slow]) > 1.0
    assert set(unseen.without("slow").devices) == {"usual"}


@pytest.mark.parametrize("special", [0.2, 0.5, 0.8])
def test_corrects_what_the_analytic_model_gets_wrong(special: float) -> None:
    """Learns the factor of a kind of work, and gives an interval around it."""
    answer = MODEL.predict(make_features(0.3, special))
    truth = math.log(0.3 * 4.0**special)
    assert answer.log_seconds == pytest.approx(truth, abs=0.2)
    interval = answer.surround()
    assert interval.low <= interval.seconds <= interval.high


@given(st.floats(min_value=1e-6, max_value=1e3))
def test_does_not_see_how_large_a_launch_is(factor: float) -> None:
    """Gives the same correction when every time grows by the same factor."""
    small, large = (MODEL.predict(make_features(0.3 * one, 0.4)) for one in (1.0, factor))
    assert large.correction == pytest.approx(small.correction, abs=1e-9)
    assert large.log_seconds - small.log_seconds == pytest.approx(math.log(factor), abs=1e-9)


def test_sizes_are_no_columns() -> None:
    """Takes no column from counts of work-items, buffers, samples, fixed costs and compilers."""
    plain = make_features(1.0, 0.5)
    sizes = {
        "static.work_items_count": 1e9, "static.buffer_bytes": 1e9, "sampled.linear_s": 3.0,
        "analytic.launch_limiter_s": 0.5, "compiler.sub_group_size_count": 16.0,
    }  # fmt: skip
    np.testing.assert_array_equal(describe({**plain, **sizes}), describe(plain))
    assert describe(plain).shape == (len(NAMES),)


def test_needs_an_analytic_time() -> None:
    """Refuses a launch that the analytic model has no time of."""
    with pytest.raises(InputError, match="calibrate the device"):
        MODEL.predict({INSTRUCTIONS: 3.0})


def test_survives_a_file() -> None:
    """Answers as before once it was written and read, and refuses what it cannot use."""
    text = static_to_json(MODELS)
    again = static_from_json(text)[RUNTIME].predict(make_features(0.3, 0.4))
    before = MODEL.predict(make_features(0.3, 0.4))
    assert again.log_seconds == pytest.approx(before.log_seconds, abs=1e-3)
    assert again.half_width == pytest.approx(before.half_width, rel=1e-2)
    with pytest.raises(InputError, match="train them again"):
        static_from_json(json.dumps(json.loads(text) | {"names": ["other"]}))
    with pytest.raises(InputError, match="cannot be read"):
        static_from_json("{")


@pytest.mark.parametrize("name", [*RUNTIMES.values(), ANY])
def test_shipped_models_answer(name: str) -> None:
    """Comes with a model per runtime, and one for others."""
    answer = load_shipped()[name].predict(make_features(0.3, 0.4))
    assert math.isfinite(answer.log_seconds)
    assert 0 < answer.half_width < math.log(100)


def test_finds_the_nearest_model() -> None:
    """A device is served by the model of its runtime, or by that of any."""
    shipped = load_shipped()
    assert find_shipped("Portable Computing Language") is shipped["pocl"]
    assert find_shipped("Somebody's") is shipped[ANY]


def test_runtimes_have_names() -> None:
    """Knows runtimes by their platforms."""
    assert name_runtime("Portable Computing Language") == "pocl"
    assert name_runtime("Intel(R) OpenCL HD Graphics") == ANY


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, Workload.STREAMING),
        ({"counters.global_loads_per_work_item": 9.0}, Workload.STENCIL),
        ({"counters.operations_per_byte": 20.0}, Workload.DENSE),
        ({"counters.lane_efficiency_ratio": 0.3}, Workload.BRANCHING),
        ({"static.indirect_access_ratio": 0.3}, Workload.SPARSE),
        ({"analytic.atomics_limiter_s": 1.0}, Workload.ATOMICS),
        ({"analytic.special_limiter_s": 1.0}, Workload.SPECIAL),
        ({"static.local_bytes_per_work_group": 64.0, "counters.barriers_per_work_item": 8.0},
         Workload.REDUCTION),
    ],
)  # fmt: skip
def test_says_what_kind_of_work_it_is(changes: dict[str, float], kind: Workload) -> None:
    """Names the kind by what a launch does most of."""
    assert classify({**make_features(1.0, 0.0), **changes}) == kind


def test_needs_two_kernels() -> None:
    """Refuses rows of one kernel: none could be held out."""
    rows = [replace(one, kernel="same") for one in make_rows(3)]
    with pytest.raises(InputError, match="at least two"):
        fit_static(rows)
