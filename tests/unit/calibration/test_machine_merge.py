import pytest

from kernelcast.calibration.calibration import merge_machines
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import (
    CacheFacts,
    Curve,
    InstructionFacts,
    MachineDescription,
    MemoryFacts,
)
from kernelcast.records.traits import Trait, TraitSource


def trait(value: float, source: TraitSource = TraitSource.MEASURED) -> Trait[float]:
    """Make a number."""
    return Trait(value=value, source=source)


def machine(**facts: object) -> MachineDescription:
    """Make a description of one and the same device."""
    return MachineDescription(id="a", name="A", kind=DeviceKind.CPU, **facts)  # type: ignore[arg-type]


def test_facts_of_the_same_name_are_joined_field_by_field() -> None:
    """Adds what a later benchmark knows to what an earlier one knew of the same thing."""
    first = machine(
        instructions=(InstructionFacts(name="fp64"),),
        caches=(CacheFacts(name="L2", latency_s=trait(4e-9)),),
        memories=(MemoryFacts(space="global", load_bytes_per_s={4: trait(1.0)}),),
    )
    second = machine(
        instructions=(InstructionFacts(name="fp32"),),
        caches=(CacheFacts(name="L1"), CacheFacts(name="L2", load_bytes_per_s=trait(2.0))),
        memories=(MemoryFacts(space="global", load_bytes_per_s={8: trait(3.0)}),),
        costs={"launch_s": trait(1e-5)},
    )
    merged = merge_machines(first, second)
    assert [one.name for one in merged.instructions] == ["fp32", "fp64"]
    assert [one.name for one in merged.caches] == ["L1", "L2"]
    assert merged.caches[1] == CacheFacts(
        name="L2", latency_s=trait(4e-9), load_bytes_per_s=trait(2.0)
    )
    assert merged.memories[0].load_bytes_per_s == {4: trait(1.0), 8: trait(3.0)}
    assert merged.costs == {"launch_s": trait(1e-5)}


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (TraitSource.MEASURED, TraitSource.MEASURED, "new"),
        (TraitSource.MEASURED, TraitSource.REPORTED, "old"),
        (TraitSource.REPORTED, TraitSource.MEASURED, "new"),
        (TraitSource.ASSUMED, TraitSource.COMPUTED, "new"),
        (TraitSource.PUBLISHED, TraitSource.ASSUMED, "old"),
    ],
)
def test_less_certain_numbers_do_not_replace_more_certain_ones(
    old: TraitSource, new: TraitSource, kept: str
) -> None:
    """Keeps the later number unless it is less certain, in fields and in mappings."""
    one = machine(clock_hz=trait(1.0, old), costs={"a_s": trait(1.0, old)})
    other = machine(clock_hz=trait(2.0, new), costs={"a_s": trait(2.0, new)})
    merged = merge_machines(one, other)
    value = 1.0 if kept == "old" else 2.0
    assert merged.clock_hz is not None
    assert (merged.clock_hz.value, merged.costs["a_s"].value) == (value, value)


def test_what_is_obtained_later_is_no_longer_missing() -> None:
    """Takes a name off the list of missing numbers once it is there."""
    curve = Curve(name="walk/local", x_name="x", y_name="y", x=(1.0,), y=(2.0,))
    before = machine(not_obtained={"launch_s": "no", "walk/local": "no", "other": "no"})
    after = machine(costs={"launch_s": trait(1.0)}, curves=(curve,), not_obtained={"new": "why"})
    merged = merge_machines(before, after)
    assert merged.not_obtained == {"other": "no", "new": "why"}
    assert merged.curves == (curve,)
