import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from kernelcast.models.validation.comparison import ALL_DEVICES, compare_errors, correct_holm
from kernelcast.records.errors import InputError


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
    """Wins beyond noise, ratios and Wilcoxon's test are those of the families' mean errors."""
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


def test_holms_correction_never_shrinks_and_keeps_order() -> None:
    """The least p-value counts as often as there are tests; those not made count for none."""
    assert correct_holm([0.5, 0.001, float("nan"), 0.04])[:2] == [0.5, 0.003]
    assert correct_holm([0.9, 0.8]) == [1.0, 1.0]


def test_what_cannot_be_compared_is_refused() -> None:
    """A missing column, one method, and no launch with two answers are named."""
    launches = make_launches()
    with pytest.raises(InputError, match="oracle_s"):
        compare_errors(launches, ("samples", "oracle"))
    with pytest.raises(InputError, match="two methods"):
        compare_errors(launches, ("samples",))
    with pytest.raises(InputError, match="far 0 answers"):
        compare_errors(launches.assign(far_s=np.nan), ("samples", "far"))
