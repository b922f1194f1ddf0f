"""What GPUs of one family share: granularities of registers, banks of the L1 cache."""

from dataclasses import dataclass

from kernelcast.records.machine import MachineDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A family of GPUs."""

    name: str
    """``nvidia``, ``cdna``, ``rdna`` or ``unknown``."""
    register_granularity: int
    """32-bit registers per work-item are allocated in multiples of this."""
    register_file: int
    """32-bit registers of a compute unit, where the description has none."""
    schedulers: int
    """Parts of a compute unit that keep their own registers; a warp lives in one of them."""
    max_registers: int
    """32-bit registers that one work-item can have."""
    local_granularity_bytes: int
    """Local memory is allocated in multiples of this."""
    l1_banks_bytes: int
    """Bytes that all banks of the L1 cache deliver in a cycle."""
    lanes_per_pass: int
    """Work-items whose addresses are looked at together."""
    issued_lanes: int
    """Work-items of a compute unit for which an instruction is issued in a cycle."""
    issues_all_in_turn: bool = False
    """Whether loads, addresses and branches take the slots of arithmetic."""
    spreads_loads: bool = False
    """Whether the loads of a work-item spread over its life, in the order of the program, even
    where registers hold all of them."""


# NVIDIA: occupancy calculator of the CUDA toolkit, compute capability 7.0 to 9.0; registers are
# allocated per warp in units of 256, thus 8 per work-item.
NVIDIA = Architecture(
    name="nvidia", register_granularity=8, register_file=65536, schedulers=4, max_registers=255,
    local_granularity_bytes=256, l1_banks_bytes=128, lanes_per_pass=32,
    issued_lanes=128, issues_all_in_turn=True,
)  # fmt: skip
# AMD's ISA documents: CDNA has four SIMDs of 256 registers for each of 64 lanes (the 512 of CDNA 2
# and 3 are shared with the accumulation registers), allocated in units of 8.
CDNA = Architecture(
    name="cdna", register_granularity=8, register_file=65536, schedulers=4, max_registers=256,
    local_granularity_bytes=512, l1_banks_bytes=64, lanes_per_pass=16,
    issued_lanes=64, spreads_loads=True,
)  # fmt: skip
# RDNA 2: two SIMDs per compute unit, 1024 registers for each of 32 lanes, units of 16.
RDNA = Architecture(
    name="rdna", register_granularity=16, register_file=65536, schedulers=2, max_registers=256,
    local_granularity_bytes=512, l1_banks_bytes=128, lanes_per_pass=32,
    issued_lanes=64,
)  # fmt: skip
_AMD_WORDS = ("amd", "instinct", "radeon", "gfx")
_CDNA_WIDTH = 64


def find_architecture(machine: MachineDescription) -> Architecture:
    """Tell a GPU's family from its name and its warp width.

    Returns
    -------
    Architecture
        NVIDIA's numbers where nothing points elsewhere.

    Examples
    --------
    >>> from kernelcast.records.device import DeviceKind
    >>> gpu = MachineDescription(id="g", name="Radeon RX 6900 XT", kind=DeviceKind.GPU)
    >>> find_architecture(gpu).name
    'rdna'
    """
    width = machine.warp_width.value if machine.warp_width else None
    text = f"{machine.id} {machine.name} {machine.platform}".lower()
    if width == _CDNA_WIDTH:
        return CDNA
    return RDNA if any(word in text for word in _AMD_WORDS) else NVIDIA
