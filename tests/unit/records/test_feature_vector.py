import math

import pytest

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import (
    FeatureGroup,
    FeatureSchema,
    FeatureVector,
    check_name,
    make_vector,
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
    """Refuses names that are foreign, out of order or without a value, and values not finite."""
    with pytest.raises(InputError, match="leave a feature out"):
        make_vector({"sampled.run_s": math.nan}, SCHEMA)
    with pytest.raises(InputError, match="one each"):
        FeatureVector(names=NAMES, values=(1.0,), schema=SCHEMA)
    with pytest.raises(InputError, match="not in schema"):
        FeatureVector(names=("static.gaps_count",), values=(1.0,), schema=SCHEMA)
    with pytest.raises(InputError, match="out of the order"):
        FeatureVector(names=NAMES[:2][::-1], values=(1.0, 2.0), schema=SCHEMA)


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
