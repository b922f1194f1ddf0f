import inspect
import math
import re
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records import errors
from kernelcast.records.device import CompilerFacts, SaturationPoint, Trait, TraitSource
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Interval, Measurement

ERRORS = [
    error
    for _, error in inspect.getmembers(errors, inspect.isclass)
    if issubclass(error, KernelcastError)
]
DURATIONS = st.floats(1e-6, 100.0)


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_is_in_the_tree(error: type[KernelcastError]) -> None:
    """Draws every error in the tree at the top of the module, under its true parent."""
    lines = (errors.__doc__ or "").splitlines()
    names = [re.search(r"\w+Error", line) for line in lines]
    index = next(i for i, name in enumerate(names) if name and name[0] == error.__name__)
    depth = lines[index].index(error.__name__)
    above = [
        found[0]
        for line, found in zip(lines[:index], names[:index], strict=True)
        if found and line.index(found[0]) < depth
    ]
    parent = above[-1] if above else "Exception"
    assert [base.__name__ for base in error.__bases__] == [parent]


@pytest.mark.parametrize(
    ("low", "seconds", "high"),
    [
        (0.0, 1, 2), (2, 1, 3), (1, 3, 2), (1, 2, math.inf), (1, math.nan, 2),
    ],
)  # fmt: skip
def test_intervals_are_ordered(low: float, seconds: float, high: float) -> None:
    """Refuses an interval that is not finite, positive and in order."""
    with pytest.raises(KernelcastError, match="not finite and ordered"):
        Interval(seconds=seconds, low=low, high=high, coverage=0.9)


@given(durations=st.lists(DURATIONS, min_size=1, max_size=12), predicted_s=DURATIONS)
def test_measurements_use_numpys_quantiles(durations: list[float], predicted_s: float) -> None:
    """Gives median, noise and signed error as NumPy computes them."""
    measurement = Measurement(durations_s=tuple(durations))
    low, middle, high = np.quantile(durations, [0.1, 0.5, 0.9])
    assert measurement.seconds == pytest.approx(middle)
    assert measurement.noise == pytest.approx((high - low) / 2 / middle, rel=1e-9, abs=1e-12)
    assert measurement.error_of(predicted_s) == pytest.approx((predicted_s - middle) / middle)
    # Of 1, 1, 1 and 3: three times |1 - 1| / 1, and once |3 - 1| / 1.
    assert Measurement(durations_s=(1.0, 1.0, 3.0, 1.0)).one_run_error == pytest.approx(0.5)
    assert Measurement(durations_s=(1.0, 2.0)).one_run_error is None


@pytest.mark.parametrize(("computed", "measured"), [(None, 3), (3, None), (2, 2), (2, 3)])
def test_disagreement_names_both_values(computed: int | None, measured: int | None) -> None:
    """Speaks of a disagreement only where rules and measurement differ, and names both."""
    p_sat = Trait(value=computed or 1, source=TraitSource.COMPUTED)
    point = SaturationPoint(p_sat=p_sat, concurrency=4, computed=computed, measured=measured)
    said = point.disagreement
    assert (said is None) == (None in {computed, measured} or computed == measured)
    assert said is None or "2 by occupancy rules, 3 measured" in said


@pytest.mark.parametrize("name", [field.name for field in fields(CompilerFacts)])
def test_numbers_are_possible(name: str) -> None:
    """Refuses negative numbers, and zero where something is always there."""
    is_size = name in {
        "preferred_work_group_multiple", "max_work_group_size", "sub_group_size",
        "sub_groups_per_work_group",
    }  # fmt: skip
    for value in [-1, 0] if is_size else [-1]:
        with pytest.raises(InputError, match=f"{name} is {value}; give a number of at least"):
            CompilerFacts(**{name: Trait(value=value, source=TraitSource.REPORTED)})
