"""Layer conditions: what caches hold of a loop nest, from reuse distances alone.

`LayerConditions` evaluates sizes, `list_transitions` solves for the sizes at which
traffic changes, `advise_blocking` says how to keep it low.
"""

from kernelcast.analytic.cpu.layer_conditions.evaluation import (
    BlockingAdvice,
    LayerConditions,
    advise_blocking,
    note_decisions,
)
from kernelcast.analytic.cpu.layer_conditions.streams import find_work_bytes
from kernelcast.analytic.cpu.layer_conditions.transitions import (
    ALL_ARRAYS,
    Transition,
    list_transitions,
)

__all__ = [
    "ALL_ARRAYS",
    "BlockingAdvice",
    "LayerConditions",
    "Transition",
    "advise_blocking",
    "find_work_bytes",
    "list_transitions",
    "note_decisions",
]
