"""A kernel rewritten to count and record, as it is handed from analysis to sampling."""

from dataclasses import dataclass

from kernelcast.records.kernel import Kernel

ADDRESS_WORDS = 2
"""Words of 64 bits per recorded address: the place and the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentedKernel:
    """A kernel with one or two more parameters at its end."""

    kernel: Kernel
    """The rewritten kernel; builds only with `header` in front of it."""
    original: Kernel
    """The kernel it was made from."""
    header: str
    """Functions that must see OpenCL's own builtins, so it goes before everything else."""
    counter_count: int
    """Counters per work-item. The parameter ``__global uint *kc_counts`` takes counter `c` of the
    work-item in row `r` of `n` at ``c * n + r``; rows are global ids of the launch, less its
    offset, dimension 0 fastest."""
    places: tuple[tuple[int, ...], ...] = ()
    """What a recorded place stands for: sites of the analysis, one number each, by the place's own
    number. Empty if nothing is recorded; else the parameters ``__global ulong *kc_log`` and ``uint
    kc_capacity`` follow: per row, `kc_capacity` pairs of place and address. Counter `counter_count`
    then counts the addresses of a work-item."""
    bases: tuple[str, ...] = ()
    """Buffers and arrays whose own address is recorded, as places `len(places)` and on."""

    @property
    def records_addresses(self) -> bool:
        """Whether addresses are recorded too."""
        return bool(self.places)

    @property
    def row_words(self) -> int:
        """Words of 32 bits that a work-item writes into the buffer of counters."""
        return self.counter_count + self.records_addresses
