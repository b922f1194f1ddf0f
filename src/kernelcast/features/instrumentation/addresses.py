"""Makes each access write its address down."""

from collections.abc import Sequence

from kernelcast.features.analysis import DividedSource, find_local_arrays
from kernelcast.features.blocks import builtins
from kernelcast.features.blocks.model import Site
from kernelcast.features.instrumentation.edits import exact_span
from kernelcast.features.rewriting import SourceEdits
from kernelcast.features.syntax import kinds
from kernelcast.features.syntax.places import Span
from kernelcast.features.syntax.tree import Node
from kernelcast.features.syntax.types import TypeClass

_HEADER = """\
static inline ulong kc_note(__private uint *kc_n, __global ulong *kc_log, uint kc_capacity,
                            uint kc_place, ulong kc_ahead, ulong kc_result)
{{
    const uint kc_i = kc_n[{counter}]++;
    if (kc_i < kc_capacity) {{
        const size_t kc_at = 2 * (kc_row() * kc_capacity + kc_i);
        kc_log[kc_at] = kc_place;
        kc_log[kc_at + 1] = kc_ahead + kc_result;
    }}
    return kc_result;
}}
#define KC_NOTE(kc_place, kc_ahead, kc_result) \\
    kc_note(kc_n, kc_log, kc_capacity, kc_place, (ulong)(kc_ahead), (ulong)(kc_result))
"""


class AddressEdits:
    """Wraps the accesses of a kernel and its helper functions.

    Attributes
    ----------
    places : tuple of tuple of int
        Sites of each place, as the facts number them: a compound assignment is one place, a load
        and a store.
    bases : tuple of str
        Buffers and arrays whose address is noted at the kernel's start.
    """

    def __init__(self, analysis: DividedSource, edits: SourceEdits, numbers: Sequence[int]) -> None:
        self._analysis = analysis
        self._edits = edits
        self._sites: dict[int, list[Site]] = {}
        for site in analysis.blocks.sites:
            if site.space != "private":
                self._sites.setdefault(site.node.key, []).append(site)
        self.places = tuple(
            tuple(numbers[site.id] for site in sites) for sites in self._sites.values()
        )
        self.bases = tuple(self._find_bases())

    def spans(self) -> list[Span]:
        """Give where the accesses stand."""
        nodes = (sites[0].node for sites in self._sites.values())
        return [node.span for node in nodes if node.span is not None]

    def header(self, *, log_counter: int) -> str:
        """Give the function that notes an address."""
        return _HEADER.format(counter=log_counter)

    def write(self) -> None:
        """Wrap every access.

        Raises
        ------
        InputError
            If one is made by a macro.
        """
        for place, sites in enumerate(self._sites.values()):
            site = sites[0]
            if site.pointer is None:
                self._wrap_object(place, site.node)
            else:
                self._wrap_pointer(place, site)
        for node in find_local_arrays(self._analysis.function):
            self._note_local(node)

    def base_marks(self) -> str:
        """Give the statements that note the addresses of buffers."""
        local = {node.spelling for node in find_local_arrays(self._analysis.function)}
        first = len(self.places)
        return "".join(
            f" KC_NOTE({first + index}, {name}, 0);"
            for index, name in enumerate(self.bases)
            if name not in local
        )

    def _wrap_object(self, place: int, node: Node) -> None:
        span = exact_span(node, "an access")
        text = node.text()
        self._edits.wrap(
            span.start, span.end,
            f"(*(__typeof__(&({text})))KC_NOTE({place}, 0, &(",
            ")))",
        )  # fmt: skip

    def _wrap_pointer(self, place: int, site: Site) -> None:
        pointer = site.pointer
        if pointer is None:
            return
        span, text = exact_span(pointer, "a pointer"), pointer.text()
        ahead = "0"
        access = builtins.find_vector_access(site.name)
        if access is not None:
            index = site.node.children[-2]
            ahead = f"(ulong)({index.text()}) * {site.bytes}ul"
        self._edits.wrap(
            span.start, span.end,
            f"((__typeof__({text}))KC_NOTE({place}, {ahead}, ",
            "))",
        )  # fmt: skip

    def _find_bases(self) -> list[str]:
        parameters = [
            child.spelling
            for child in self._analysis.function.children
            if child.kind == kinds.PARAMETER and child.type.type_class is TypeClass.POINTER
        ]
        constants = [
            node.spelling
            for node in self._analysis.tree.variables.values()
            if node.type.space == "constant" and node.type.type_class is TypeClass.ARRAY
        ]
        return [
            *parameters,
            *constants,
            *(node.spelling for node in find_local_arrays(self._analysis.function)),
        ]

    def _note_local(self, node: Node) -> None:
        """Note where a local array lies, behind its declaration."""
        span = exact_span(node, "a local array")
        source = self._analysis.tree.places.source
        end = source.find(b";", span.end) + 1
        place = len(self.places) + self.bases.index(node.spelling)
        self._edits.insert_after(end, f" KC_NOTE({place}, &{node.spelling}, 0);")
