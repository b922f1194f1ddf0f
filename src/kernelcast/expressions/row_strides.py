"""How far apart neighbours are where sizes decide: rows that may meet in few sets of caches."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelcast.expressions.group_forms import Form, Sizes
from kernelcast.expressions.symbols import Symbol, SymbolKind

_ROWS_BYTES, _NEARLY_BYTES = 512, 4
"""Rows that are multiples of so much apart, or nearly, may meet in few sets of caches: 16 of them
then begin equally far into their lines."""
_OTHER_ROWS = [Symbol(SymbolKind.LOCAL_ID, axis=one) for one in (1, 2)]
"""Vectors lie along x."""


@dataclass(frozen=True, slots=True)
class RowStrides:
    """Bytes from one address of a vector to the next, in products of sizes.

    Parameters
    ----------
    strides : frozenset of tuple of (int, int)
        Places of products and their factors.
    places : frozenset of int
        All of these places.
    """

    strides: frozenset[tuple[tuple[int, int], ...]]
    places: frozenset[int]

    @classmethod
    def of(cls, forms: Iterable[Form], index: Mapping[Sizes, int]) -> "RowStrides":
        """Find them in addresses; `index` gives the places of products."""
        found: set[tuple[tuple[int, int], ...]] = set()
        for form in forms:
            steps: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
            for (what, sizes), factor in form.inner.items():
                if not any(isinstance(one, Symbol) and one in _OTHER_ROWS for one in what):
                    steps[what].append((index[sizes], factor))
            found.update(tuple(one) for one in steps.values())
        sized = [one for one in found if any(at != index[()] and factor for at, factor in one)]
        return cls(frozenset(sized), frozenset(at for one in sized for at, _ in one))

    def crowd(self, values: Sequence[int]) -> bool:
        """Tell whether rows may meet in few sets of a cache, by the products' values."""
        for one in self.strides:
            apart = sum(values[place] * factor for place, factor in one)
            if (apart + _NEARLY_BYTES) % _ROWS_BYTES <= 2 * _NEARLY_BYTES:
                return True
        return False
