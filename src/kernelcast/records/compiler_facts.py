"""What compiler and driver tell of one kernel on one device, beside what its source says."""

from dataclasses import dataclass, fields

from kernelcast.records.errors import InputError
from kernelcast.records.traits import Trait

# Sizes of something that is there: a kernel always has work-groups of at least one work-item.
_AT_LEAST_ONE = frozenset({
    "preferred_work_group_multiple",
    "max_work_group_size",
    "sub_group_size",
    "sub_groups_per_work_group",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerFacts:
    """Resources of a compiled kernel; None stands for "nobody says", never for zero."""

    private_bytes_per_work_item: Trait[int] | None = None
    """Private memory that does not fit into registers."""
    local_bytes_per_work_group: Trait[int] | None = None
    """Local memory that the kernel declares; local arguments come on top."""
    preferred_work_group_multiple: Trait[int] | None = None
    max_work_group_size: Trait[int] | None = None
    sub_group_size: Trait[int] | None = None
    """Work-items per sub-group (warp, wavefront, vector) at this local size."""
    sub_groups_per_work_group: Trait[int] | None = None
    registers_per_work_item: Trait[int] | None = None
    """32-bit hardware registers."""
    stack_frame_bytes_per_work_item: Trait[int] | None = None
    """Call stack, arrays and spilled registers together."""
    spill_store_bytes_per_work_item: Trait[int] | None = None
    spill_load_bytes_per_work_item: Trait[int] | None = None
    """Bytes moved by the instructions that spill registers, each counted once."""
    ptx_virtual_register_count: Trait[int] | None = None
    """Registers that the PTX of the kernel declares, of any width, before hardware registers are
    allocated."""
    ptx_instruction_count: Trait[int] | None = None
    """Instructions in the PTX of the kernel's own body, each counted once."""

    def __post_init__(self) -> None:
        for name, trait in self.known.items():
            least = 1 if name in _AT_LEAST_ONE else 0
            if trait.value < least:
                msg = (
                    f"compiler facts: {name} is {trait.value}; give a number of at least {least}, "
                    "or None where it is not known"
                )
                raise InputError(msg)

    @property
    def known(self) -> dict[str, Trait[int]]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: trait for name, trait in values.items() if trait is not None}
