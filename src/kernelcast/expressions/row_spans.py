"""How far apart addresses of a buffer lie that sizes multiply: rows that cannot meet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelcast.expressions.accesses import MemoryAccess
from kernelcast.expressions.group_bounds import GroupBounds
from kernelcast.expressions.group_forms import CONSTANT, GROUP, START, Form, Sizes

BANKS_BYTES = 128
"""After so many bytes, banks of local memory come again; also a multiple of usual lines."""


@dataclass(frozen=True, slots=True)
class RowSpans:
    """How far apart the addresses of a buffer can be that are compared, in products of sizes."""

    reach: float
    spans: tuple[tuple[int, float], ...]

    @classmethod
    def measure(
        cls,
        forms: Sequence[tuple[Form, MemoryAccess]],
        index: Mapping[Sizes, int],
        bounds: GroupBounds,
    ) -> "RowSpans":
        """Measure addresses of one work-group and its neighbours, which move in the same way."""
        spans: dict[Sizes, float] = {}
        for sizes in sorted(set().union(*(form.sizes() for form, _ in forms)), key=str):
            constants = [form.places.get((CONSTANT, sizes), 0) for form, _ in forms]
            inside = [
                sum(
                    abs(factor) * bounds.bound(what)
                    for (what, of), factor in form.inner.items()
                    if of == sizes and factor
                )
                for form, _ in forms
            ]
            moved = sum(
                abs(factor) * (bounds.local[place - START] if place < GROUP else 1)
                for (place, of), factor in forms[0][0].moves.items()
                if of == sizes
            )
            spans[sizes] = max(constants) - min(constants) + 2 * (max(inside) + moved)
        most = max(access.bytes for _, access in forms) + BANKS_BYTES
        others = tuple((index[one], span) for one, span in spans.items() if one and span)
        return cls(spans.get((), 0.0) + most, others)

    def keeps_apart(self, values: Sequence[int]) -> bool:
        """Tell whether two addresses with other multiples of sizes are never near each other."""
        reach = self.reach
        for place, span in sorted(self.spans, key=lambda one: values[one[0]]):
            if values[place] <= reach:
                return False
            reach += values[place] * span
        return True
