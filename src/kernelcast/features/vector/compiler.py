"""Features that compiler and driver tell of a kernel on one device."""

from collections.abc import Callable
from dataclasses import dataclass

from kernelcast.features.vector.definitions import Feature
from kernelcast.records.compiler_facts import CompilerFacts
from kernelcast.records.device import SaturationPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerSource:
    """What compiler features are made of."""

    facts: CompilerFacts
    """Resources of the compiled kernel."""
    saturation: SaturationPoint | None = None
    """P_sat, where it was found."""


def _fact(name: str) -> Callable[[CompilerSource], float | None]:
    def read(source: CompilerSource) -> float | None:
        trait = source.facts.known.get(name)
        return None if trait is None else trait.value

    return read


def _active(source: CompilerSource) -> float | None:
    return None if source.saturation is None else source.saturation.p_sat.value


def _computed_active(source: CompilerSource) -> float | None:
    return None if source.saturation is None else source.saturation.computed


FEATURES: tuple[Feature[CompilerSource], ...] = (
    Feature(
        name="compiler.active_work_groups_per_compute_unit",
        meaning="P_sat: work-groups active at once on a compute unit, the value in use",
        compute=_active,
        table_1="active work-groups",
    ),
    Feature(
        name="compiler.computed_active_work_groups_per_compute_unit",
        meaning="the same by the vendor's occupancy rules",
        compute=_computed_active,
    ),
    Feature(
        name="compiler.registers_per_work_item",
        meaning="32-bit hardware registers",
        compute=_fact("registers_per_work_item"),
        table_1="registers per work-item",
    ),
    Feature(
        name="compiler.private_bytes_per_work_item",
        meaning="private memory that does not fit into registers",
        compute=_fact("private_bytes_per_work_item"),
    ),
    Feature(
        name="compiler.local_bytes_per_work_group",
        meaning="local memory that the compiled kernel declares, without local arguments",
        compute=_fact("local_bytes_per_work_group"),
    ),
    Feature(
        name="compiler.preferred_work_group_multiple_count",
        meaning="work-items of which a work-group should have a multiple",
        compute=_fact("preferred_work_group_multiple"),
    ),
    Feature(
        name="compiler.max_work_group_size_count",
        meaning="work-items of the largest work-group of this kernel",
        compute=_fact("max_work_group_size"),
    ),
    Feature(
        name="compiler.sub_group_size_count",
        meaning="work-items per sub-group (warp, wavefront, vector) at this local size",
        compute=_fact("sub_group_size"),
    ),
    Feature(
        name="compiler.sub_groups_per_work_group",
        meaning="sub-groups of a work-group at this local size",
        compute=_fact("sub_groups_per_work_group"),
    ),
    Feature(
        name="compiler.stack_frame_bytes_per_work_item",
        meaning="call stack, arrays and spilled registers together",
        compute=_fact("stack_frame_bytes_per_work_item"),
    ),
    Feature(
        name="compiler.spill_store_bytes_per_work_item",
        meaning="bytes that instructions which spill registers store, each counted once",
        compute=_fact("spill_store_bytes_per_work_item"),
    ),
    Feature(
        name="compiler.spill_load_bytes_per_work_item",
        meaning="bytes that instructions which fill registers load, each counted once",
        compute=_fact("spill_load_bytes_per_work_item"),
    ),
    Feature(
        name="compiler.ptx_virtual_registers_count",
        meaning="registers that the PTX declares, before hardware registers are allocated",
        compute=_fact("ptx_virtual_register_count"),
    ),
    Feature(
        name="compiler.ptx_instructions_count",
        meaning="instructions in the PTX of the kernel's own body, each counted once",
        compute=_fact("ptx_instruction_count"),
    ),
)
"""In the order of the schema."""
