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


FEATURES: tuple[Feature[CompilerSource], ...] = (
    Feature("compiler.active_work_groups_per_compute_unit",
            "P_sat: work-groups active at once on a compute unit, the value in use",
            lambda s: None if s.saturation is None else s.saturation.p_sat.value,
            table_1="active work-groups"),
    Feature("compiler.computed_active_work_groups_per_compute_unit",
            "the same by the vendor's occupancy rules",
            lambda s: None if s.saturation is None else s.saturation.computed),
    Feature("compiler.registers_per_work_item", "32-bit hardware registers",
            _fact("registers_per_work_item"), table_1="registers per work-item"),
    Feature("compiler.private_bytes_per_work_item",
            "private memory that does not fit into registers",
            _fact("private_bytes_per_work_item")),
    Feature("compiler.local_bytes_per_work_group",
            "local memory that the compiled kernel declares, without local arguments",
            _fact("local_bytes_per_work_group")),
    Feature("compiler.preferred_work_group_multiple_count",
            "work-items of which a work-group should have a multiple",
            _fact("preferred_work_group_multiple")),
    Feature("compiler.max_work_group_size_count",
            "work-items of the largest work-group of this kernel", _fact("max_work_group_size")),
    Feature("compiler.sub_group_size_count",
            "work-items per sub-group (warp, wavefront, vector) at this local size",
            _fact("sub_group_size")),
    Feature("compiler.sub_groups_per_work_group", "sub-groups of a work-group at this local size",
            _fact("sub_groups_per_work_group")),
    Feature("compiler.stack_frame_bytes_per_work_item",
            "call stack, arrays and spilled registers together",
            _fact("stack_frame_bytes_per_work_item")),
    Feature("compiler.spill_store_bytes_per_work_item",
            "bytes that instructions which spill registers store, each counted once",
            _fact("spill_store_bytes_per_work_item")),
    Feature("compiler.spill_load_bytes_per_work_item",
            "bytes that instructions which fill registers load, each counted once",
            _fact("spill_load_bytes_per_work_item")),
    Feature("compiler.ptx_virtual_registers_count",
            "registers that the PTX declares, before hardware registers are allocated",
            _fact("ptx_virtual_register_count")),
    Feature("compiler.ptx_instructions_count",
            "instructions in the PTX of the kernel's own body, each counted once",
            _fact("ptx_instruction_count")),
)  # fmt: skip
"""In the order of the schema."""
