import inspect
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records import errors
from kernelcast.records.arguments import ElementType, ScalarArgument, make_scalar
from kernelcast.records.device import SaturationPoint, Trait, TraitSource
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.estimates import Interval, Measurement
from kernelcast.records.feature_vector import (
    FeatureGroup,
    FeatureSchema,
    FeatureVector,
    check_name,
    make_vector,
)
from support import strategies

DURATIONS = st.floats(1e-6, 100.0)


def test_every_error_is_in_the_tree() -> None:
    """The text of the module draws every error under its true parent."""
    drawn: dict[str, str] = {}
    above = [(-1, "Exception")]
    for indent, name in re.findall(r"^([^\w\n]*)(\w+Error)", errors.__doc__ or "", re.MULTILINE):
        above = [one for one in above if one[0] < len(indent)]
        drawn[name] = above[-1][1]
        above.append((len(indent), name))
    classes = [one for _, one in inspect.getmembers(errors, inspect.isclass)]
    true = {one.__name__: one.__base__.__name__ for one in classes
            if issubclass(one, KernelcastError)}  # fmt: skip
    assert drawn == true


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


@given(element=strategies.element_types())
def test_element_types_survive_their_text(element: ElementType) -> None:
    """Reads back every element type from what it prints."""
    assert ElementType.parse(str(element)) == element


@pytest.mark.parametrize(
    ("text", "base", "lanes", "size_bytes"),
    [
        ("float", "float32", 1, 4), ("double8", "float64", 8, 64), ("uchar", "uint8", 1, 1),
        ("half4", "float16", 4, 8), ("ulong2", "uint64", 2, 16), ("int3", "int32", 3, 16),
        ("unsigned int", "uint32", 1, 4), ("size_t", "uint64", 1, 8),
    ],
)  # fmt: skip
def test_reads_opencl_names(text: str, base: str, lanes: int, size_bytes: int) -> None:
    """Reads OpenCL C's type names with the sizes its standard gives, three lanes stored as four."""
    element = ElementType.from_opencl(text)
    assert element == ElementType(base, lanes)
    assert element.bytes == size_bytes


@given(argument=strategies.scalar_arguments())
def test_scalars_have_the_size_of_their_type(argument: ScalarArgument) -> None:
    """Makes a scalar or vector of exactly the bytes that a kernel expects."""
    value = make_scalar(argument)
    assert value.nbytes == argument.element.bytes
    assert np.array_equal(
        np.atleast_1d(value)[: argument.element.lanes],
        np.array(argument.values, dtype=argument.element.dtype),
    )


NAMES = ("static.buffer_bytes", "compiler.registers_per_work_item", "sampled.run_s")
SCHEMA = FeatureSchema(names=NAMES, version=1)
VECTOR = make_vector({"sampled.run_s": 0.5, "static.buffer_bytes": 64}, SCHEMA)


@pytest.mark.parametrize(
    "name",
    [
        "static.buffers", "static.bytes_", "buffers_count", "unknown.buffers_count",
        "static.Buffers_count", "static.count", "static.run_ms", "static.loads_per_thread", "",
    ],
)  # fmt: skip
def test_names_without_group_or_unit_are_refused(name: str) -> None:
    """Says which groups and units there are."""
    with pytest.raises(InputError, match=r"expected group\.name_unit"):
        check_name(name)


def test_names_and_values_must_match_the_schema() -> None:
    """Refuses names that are foreign, and values that are not finite."""
    with pytest.raises(InputError, match="leave a feature out"):
        make_vector({"sampled.run_s": math.nan}, SCHEMA)
    with pytest.raises(InputError, match="not in schema"):
        FeatureVector(values={"static.gaps_count": 1.0}, schema=SCHEMA)


def test_the_schema_id_depends_on_names_order_and_version() -> None:
    """Differs for whatever a model could mistake."""
    schemas = [
        SCHEMA,
        FeatureSchema(names=NAMES, version=2),
        FeatureSchema(names=NAMES[::-1], version=1),
        FeatureSchema(names=NAMES[:2], version=1),
    ]
    assert len({one.id for one in schemas}) == len(schemas)
    assert FeatureSchema(names=NAMES, version=1).id == SCHEMA.id


def test_groups_can_be_selected() -> None:
    """Keeps the features of some groups in vector and schema."""
    static = VECTOR.select([FeatureGroup.STATIC, FeatureGroup.COMPILER])
    assert static.as_dict() == {"static.buffer_bytes": 64.0}
    assert static.schema == SCHEMA.select({"static", "compiler"})
    with pytest.raises(InputError, match="groups dynamic unknown"):
        VECTOR.select(["dynamic"])
