import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from kernelcast.models.validation.comparison import (
    ALL_DEVICES,
    DeviceComparison,
    compare_errors,
    compare_validated,
    comparison_from_json,
    comparison_to_json,
    correct_holm,
    find_interval,
)
from kernelcast.models.validation.report import (
    DeviceScore,
    ValidatedRows,
    ValidationReport,
)
from kernelcast.records.errors import InputError

Errors = list[list[float | None]]
"""A list of rows' errors per kernel; None where the model had no answer."""


def make_report(
    *,
    split: str = "kernel",
    noise: float = 0.0,
    linear: list[float] | None = None,
    **models: Errors,
) -> ValidationReport:
    """Make a report on one device of kernels k0, k1, ...; two kernels make an application."""
    sizes = [len(rows) for rows in next(iter(models.values()))]
    linear_groups = tuple(
        {"group": f"k{place}", "rows": 1, "error": 0.0, "linear_error": error}
        for place, error in enumerate(linear or [0.01] * len(sizes))
    )
    scores = [
        DeviceScore(
            model=name, device="d", errors=None, unanswered=0, classes=(), groups=linear_groups,
            noise=noise, coverage=None, half_width=None, in_domain=None,
        )
        for name in models
    ]  # fmt: skip
    answers = []
    for name, rows in models.items():  # too long ones
        told = [None if one is None else 2.0 * (1 + one) for each in rows for one in each]
        answers.append({
            "model": name, "seconds": told, "low": told, "high": told,
            "in_domain": [True] * len(told),
        })  # fmt: skip
    kernels = [f"k{place}" for place, size in enumerate(sizes) for _ in range(size)]
    groups = [f"a{int(one[1:]) // 2}" for one in kernels] if split == "application" else kernels
    return ValidationReport(
        split=split, coverage=0.9, schema_id="v1-0", data_digest="d", versions={},
        scores=tuple(scores), rankings=(),
        refused={"one on d": "why", "other on d": "not asked for"},
        rows=ValidatedRows(
            keys=tuple(map(str, range(len(kernels)))), groups=tuple(groups),
            kernels=tuple(kernels), devices=("d",) * len(kernels),
            measured_s=(2.0,) * len(kernels),
            models=tuple(answers),
        ),
    )  # fmt: skip


def compare_two(first: Errors, second: Errors, **options: object) -> DeviceComparison:
    """Compare models `one` and `two`."""
    report = make_report(one=first, two=second, **options)  # type: ignore[arg-type]
    (device,) = compare_validated(report, "one", "two", resamples=500).devices
    return device


ERRORS = st.lists(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=4), min_size=2, max_size=12)


@given(errors=ERRORS, shift=st.floats(0.01, 1.0))
@settings(max_examples=40, deadline=None)
def test_a_constant_shift_is_found(errors: Errors, shift: float) -> None:
    """A model that is worse by the same everywhere: the difference is that, and certain."""
    worse: Errors = [[one + shift for one in rows if one is not None] for rows in errors]
    found = compare_two(errors, worse)
    for value in (found.difference, found.low, found.high):
        assert value == pytest.approx(shift, abs=1e-9)
    assert found.count_wins("one") == len(errors)


def test_a_case_by_hand() -> None:
    """Means over rows, winners beyond the noise, of the kernel before that of the device, classes
    over groups, worked out by hand; JSON keeps it, and only of its own models."""
    first: Errors = [[0.01, 0.03], [0.10], [0.30, 0.50, None]]
    second: Errors = [[0.03, 0.03], [0.02], [0.10, 0.20, 0.30]]
    found = compare_two(first, second, noise=0.02, linear=[0.02, 0.07, 0.4])
    assert (found.rows, found.unpaired) == (5, 1)
    assert found.first_errors is not None
    assert found.second_errors is not None
    assert found.first_errors["mean"] == pytest.approx(0.188)
    assert found.second_errors["mean"] == pytest.approx(0.076)
    assert found.difference == pytest.approx(-0.112)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= -0.112 <= found.high
    assert [one["kernel"] for one in found.kernels] == ["k2", "k1", "k0"]
    assert [one["winner"] for one in found.kernels] == ["two", "two", None]
    assert [one["difference"] for one in found.kernels] == pytest.approx([-0.25, -0.08, 0.01])
    classes = [(one["groups"], one["first_error"], one["second_error"]) for one in found.classes]
    assert classes == [
        (1, pytest.approx(0.02), pytest.approx(0.03)),
        (1, pytest.approx(0.10), pytest.approx(0.02)),
        (1, pytest.approx(0.40), pytest.approx(0.15)),
    ]
    report = make_report(one=[[0.05]] * 2, two=[[0.01]] * 2, other=[[0.1]] * 2, noise=0.001)
    noise = {"0": 0.2, "1": float("nan")}
    compared = compare_validated(report, "one", "two", resamples=100, noise=noise)
    (device,) = compared.devices
    assert {one["kernel"]: (one["winner"], one["noise"]) for one in device.kernels} == {
        "k0": (None, 0.2), "k1": ("two", 0.001),
    }  # fmt: skip
    assert compared.refused == {"one on d": "why"}
    assert comparison_from_json(comparison_to_json(compared)) == compared
    for second, message in (("three", "no model three"), ("one", "two different")):
        with pytest.raises(InputError, match=message):
            compare_validated(report, "one", second)


def test_intervals_hold_the_true_difference() -> None:
    """Of many samples of skewed, clustered differences about 95 % of intervals hold the truth."""
    rng = np.random.default_rng(3)
    held = 0
    trials = 300
    for seed in range(trials):
        of_kernels = rng.exponential(0.1, size=60) - 0.04
        clusters = np.repeat(np.arange(60), 4)
        values = of_kernels[clusters] + rng.normal(scale=0.02, size=len(clusters))
        interval = find_interval(values, clusters, 800, seed)
        assert interval is not None
        held += interval[0] <= 0.06 <= interval[1]
    assert 0.91 <= held / trials <= 0.985


def test_applications_are_drawn_whole() -> None:
    """Where applications are held out, kernels of one are not drawn on their own."""
    first: Errors = [[0.1], [0.1], [0.3], [0.3]]
    second: Errors = [[0.2], [0.0], [0.4], [0.2]]
    report = make_report(one=first, two=second, split="application")
    found = compare_validated(report, "one", "two", resamples=200)
    assert found.resampled == "application"
    (device,) = found.devices
    assert (device.low, device.high) == (pytest.approx(0), pytest.approx(0))
    assert compare_two(first, second).high == pytest.approx(0.1, abs=0.06)
    assert (compare_two(first, second).high or 0.0) > 0.01


def test_what_cannot_be_told_is_none() -> None:
    """One kernel has no interval; models without a common row have no difference."""
    alone = compare_two([[0.1, 0.2]], [[0.2, 0.1]])
    assert (alone.low, alone.high) == (None, None)
    assert alone.difference == pytest.approx(0)
    apart = compare_two([[0.1], [None]], [[None], [0.1]])
    assert (apart.rows, apart.unpaired, apart.difference, apart.first_errors) == (0, 2, None, None)


def make_launches(families: int = 24, sizes: int = 4, *, seed: int = 0) -> pd.DataFrame:
    """Make launches on which `samples` is nearer where work is even, and `formula` elsewhere."""
    rng = np.random.default_rng(seed)
    count = families * sizes
    is_even = np.repeat(np.arange(families) % 2 == 0, sizes)
    measured_s = rng.uniform(0.1, 1.0, count)
    good, bad = rng.uniform(0.01, 0.03, count), rng.uniform(0.2, 0.4, count)
    return pd.DataFrame({
        "kernel": [f"k{place // sizes}" for place in range(count)],
        "device": np.where(np.arange(count) % 2, "one", "two"), "measured_s": measured_s,
        "noise": 0.02, "unevenness": np.where(is_even, 1.0, 5.0) + rng.uniform(0, 0.5, count),
        "evenness": np.where(is_even, "even", "uneven"),
        "samples_s": measured_s * (1 + np.where(is_even, good, bad)),
        "formula_s": measured_s * (1 - np.where(is_even, bad, good)),
        "far_s": measured_s * 3,
    })  # fmt: skip


def test_pairs_are_compared_by_family_with_corrected_tests() -> None:
    """Wins beyond noise, ratios and Wilcoxon's test are those of the families' mean errors; the
    least p-value counts as often as there are tests that were made."""
    launches = make_launches()
    found = compare_errors(launches, ("samples", "formula", "far"))
    pairs = found.pairs.set_index(["device", "first", "second"])
    assert {*pairs.index.get_level_values("device")} == {"one", "two", ALL_DEVICES}
    one = pairs.loc[(ALL_DEVICES, "samples", "far")]
    families = found.launches.groupby("family")[["samples_error", "far_error"]].mean()
    difference = families["far_error"] - families["samples_error"]
    assert one["families"] == one["first_wins"] == len(families) == 24
    assert one["ratio"] == pytest.approx(
        (families["far_error"] / families["samples_error"]).median()
    )
    assert one["ratio_low"] <= one["ratio"] <= one["ratio_high"]
    assert one["p"] == pytest.approx(wilcoxon(difference).pvalue)
    assert (one["p_holm"] > one["p"], one["nearer"]) == (True, "samples")
    alike = pairs.loc[(ALL_DEVICES, "samples", "formula")]
    assert (alike["first_wins"], alike["second_wins"], alike["nearer"]) == (12, 12, "")
    assert correct_holm([0.5, 0.001, float("nan"), 0.04])[:2] == [0.5, 0.003]
    assert correct_holm([0.9, 0.8]) == [1.0, 1.0]


def test_a_tree_says_where_which_is_nearer_and_how_well_on_families_left_out() -> None:
    """At most four leaves; who follows them errs by far less than with either method alone."""
    found = compare_errors(make_launches(), ("samples", "formula"))
    assert 2 <= len(found.rules) <= 4
    by_condition = dict(zip(found.rules["launches_with"], found.rules["nearer"], strict=True))
    assert {*by_condition.values()} == {"samples", "formula"}
    (quality,) = found.rule_errors.to_dict("records")
    assert quality["share_right"] > 0.95
    assert quality["followed_error"] < 0.5 * min(quality["first_error"], quality["second_error"])
    assert quality["nearest_error"] <= quality["followed_error"]
    classes = found.classes.set_index(["class", "value"])
    assert classes.loc[("evenness", "even"), "first_wins"] == 12
    assert classes.loc[("evenness", "uneven"), "second_wins"] == 12


def test_a_tree_of_noise_is_worth_nothing_on_families_left_out() -> None:
    """Where nothing tells which method is nearer, its error left out is not below both."""
    launches = make_launches(seed=1)
    rng = np.random.default_rng(2)
    for name in ("samples_s", "formula_s"):
        launches[name] = launches["measured_s"] * (1 + rng.normal(0, 0.1, len(launches)))
    launches["unevenness"] = rng.uniform(size=len(launches))
    (quality,) = compare_errors(
        launches.assign(formula_s=-launches["formula_s"] + 2 * launches["measured_s"]),
        ("samples", "formula"),
    ).rule_errors.to_dict("records")
    assert quality["p"] > 0.01


def test_launches_without_answers_are_left_out_of_their_pairs_only() -> None:
    """A method that answers half of the launches is compared on these; JSON holds no NaN."""
    launches = make_launches()
    launches.loc[launches["evenness"] == "even", "far_s"] = np.nan
    found = compare_errors(launches, ("samples", "formula", "far"))
    pairs = found.pairs[found.pairs["device"] == ALL_DEVICES].set_index(["first", "second"])
    assert pairs.loc[("samples", "far"), "families"] == 12
    assert pairs.loc[("samples", "formula"), "families"] == 24
    plain = found.to_plain()
    assert {"methods", "scores", "pairs", "classes", "rules", "rule_errors", "notes"} == {*plain}
    assert not any(one != one for row in plain["classes"] for one in row.values())


def test_what_cannot_be_compared_is_refused() -> None:
    """A missing column, one method, and no launch with two answers are named."""
    launches = make_launches()
    for methods, told in (
        (("samples", "oracle"), "oracle_s"), (("samples",), "two methods"),
        (("samples", "far"), "far 0 answers"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=told):
            compare_errors(launches.assign(far_s=np.nan), methods)
