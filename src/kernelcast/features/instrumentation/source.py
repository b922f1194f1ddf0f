"""Writes the copy of a kernel that counts how often each of its blocks is executed.

Counters are private: an array of each work-item, indexed by constants only, so that compilers keep
it in registers. Helper functions that count are handed a pointer to it. At the end, each
work-item writes its counters into a buffer; `return` in the kernel goes there first.
"""

from collections.abc import Sequence
from dataclasses import replace

from kernelcast.features.analysis import Analysis, DividedSource, divide_source
from kernelcast.features.blocks.model import CounterForm, CounterPlace
from kernelcast.features.instrumentation.addresses import AddressEdits
from kernelcast.features.instrumentation.edits import add_parameter, expand_functions, mark_body
from kernelcast.features.instrumentation.helpers import hand_on
from kernelcast.features.instrumentation.translation import number_sites
from kernelcast.features.parsing import parse_source
from kernelcast.features.rewriting import SourceEdits
from kernelcast.records.errors import InputError
from kernelcast.records.instrumented_kernel import InstrumentedKernel
from kernelcast.records.kernel import Kernel

_HEADER = """\
#define KC_N {words}
static inline size_t kc_row_of(size_t x, size_t y, size_t z)
{{ return (z * get_global_size(1) + y) * get_global_size(0) + x; }}
static inline size_t kc_row(void)
{{
    return kc_row_of(get_global_id(0) - get_global_offset(0),
        get_global_id(1) - get_global_offset(1), get_global_id(2) - get_global_offset(2));
}}
static inline size_t kc_rows(void)
{{ return get_global_size(0) * get_global_size(1) * get_global_size(2); }}
static inline void kc_flush(__global uint *kc_to, __private const uint *kc_n)
{{
    const size_t kc_at = kc_row();
    const size_t kc_apart = kc_rows();
    {stores}
}}
#define KC(kc_c) (kc_n[kc_c] += 1u)
"""
_LABEL = "kc_end"
_FEWEST_WORDS = 1


def instrument(
    kernel: Kernel, analysis: Analysis, *, records_addresses: bool = False
) -> InstrumentedKernel:
    """Write the counting copy of a kernel.

    Parameters
    ----------
    records_addresses : bool
        Whether each access to global, constant and local memory writes its address down as well.

    Returns
    -------
    InstrumentedKernel
        Counters have the numbers of the divided source; see `translate_sample`.

    Raises
    ------
    InputError
        If the source has errors, or functions that cannot be rewritten; says which and why.
    """
    errors = [gap.reason for gap in analysis.facts.gaps if "error in the source" in gap.reason]
    if errors:
        msg = f"kernel {kernel.name}: cannot be counted; {errors[0]}"
        raise InputError(msg)
    numbers = number_sites(analysis) if records_addresses else None
    try:
        return _Writer(kernel, analysis.divided, numbers).write()
    except InputError:
        return _Writer(kernel, _expand(kernel, analysis.divided), numbers).write()


def _expand(kernel: Kernel, analysis: DividedSource) -> DividedSource:
    """Analyse the kernel without its macros; blocks and sites must come out the same."""
    text = expand_functions(analysis.tree, kernel.source)
    parsed = parse_source(
        text, kernel.build_options, source_name=kernel.source_name,
        dialect=kernel.dialect,
    )  # fmt: skip
    expanded = divide_source(parsed, kernel.name, source_name=kernel.source_name)
    old, new = analysis.blocks, expanded.blocks
    if len(old.counters) != len(new.counters) or len(old.sites) != len(new.sites):
        msg = (
            f"kernel {kernel.name}: written out without macros it has {len(new.counters)} blocks "
            f"to count, with them {len(old.counters)}; replace the macros around its statements"
        )
        raise InputError(msg)
    return expanded


class _Writer:
    """Edits one source."""

    def __init__(
        self, kernel: Kernel, analysis: DividedSource, numbers: Sequence[int] | None
    ) -> None:
        self._kernel = kernel
        self._analysis = analysis
        self._source = analysis.tree.places.source.decode()
        self._edits = SourceEdits(self._source)
        self._counters = analysis.blocks.counters
        self._addresses = None if numbers is None else AddressEdits(analysis, self._edits, numbers)

    def write(self) -> InstrumentedKernel:
        """Apply all edits."""
        count = len(self._counters)
        spans = [place.span for place in self._counters if place.span is not None]
        if self._addresses is not None:
            spans += self._addresses.spans()
            self._addresses.write()
        for place in self._counters:
            self._count(place)
        hand_on(
            self._edits,
            self._analysis,
            spans,
            parameter="__private uint *kc_n" + self._log_parameter(),
            argument="kc_n" + self._log_argument(),
        )
        self._mark_kernel()
        words = max(_FEWEST_WORDS, count + (self._addresses is not None))
        # Written out: an index that is no constant would move the array out of registers.
        stores = " ".join(
            f"kc_to[{word} * kc_apart + kc_at] = kc_n[{word}];" for word in range(words)
        )
        header = _HEADER.format(words=words, stores=stores)
        if self._addresses is not None:
            header += self._addresses.header(log_counter=count)
        return InstrumentedKernel(
            kernel=replace(self._kernel, source=self._edits.apply()),
            original=self._kernel,
            header=header,
            counter_count=count,
            places=self._addresses.places if self._addresses else (),
            bases=self._addresses.bases if self._addresses else (),
        )

    def _log_parameter(self) -> str:
        return "" if self._addresses is None else ", __global ulong *kc_log, uint kc_capacity"

    def _log_argument(self) -> str:
        return "" if self._addresses is None else ", kc_log, kc_capacity"

    def _count(self, place: CounterPlace) -> None:
        """Write a counter's increment."""
        span = place.span
        if span is None or not span.is_exact:
            msg = f"line {place.line}: a block is made by a macro or stands in an included file"
            raise InputError(msg)
        increment = f"KC({place.counter})"
        if place.form is CounterForm.COMPOUND:
            self._edits.insert_after(span.start + 1, f" {increment};")
        elif place.form is CounterForm.EXPRESSION:
            self._edits.wrap(span.start, span.end, f"({increment}, (", "))")
        elif place.form is CounterForm.LABELLED:
            self._edits.insert_before(span.start, f"{increment}; ")
        else:
            end = _end_of_statement(self._analysis.tree.places.source, span.end)
            self._edits.wrap(span.start, end, f"{{ {increment}; ", " }")

    def _mark_kernel(self) -> None:
        """Add the kernel's parameters, the counters at its start and the flush at its end."""
        kernel = self._analysis.function
        add_parameter(self._edits, kernel, "__global uint *kc_counts" + self._log_parameter())
        bases = self._addresses.base_marks() if self._addresses is not None else ""
        mark_body(
            self._edits,
            kernel,
            begin=f" uint kc_n[KC_N] = {{ 0 }};{bases}",
            end="kc_flush(kc_counts, kc_n);",
            label=_LABEL,
        )


def _end_of_statement(source: bytes, end: int) -> int:
    """Give the byte behind a statement's semicolon; libclang leaves it out of expressions."""
    if source[end - 1 : end] in (b";", b"}"):
        return end
    place = source.find(b";", end)
    return place + 1 if place >= 0 else end
