"""Functions that are being run, and where their jumps go."""

from dataclasses import dataclass, field

from kernelcast.expressions import Condition, Expr, Unknown, conjunction, equal, not_equal
from kernelcast.features.addresses.state import State
from kernelcast.features.addresses.values import Opaque, Value
from kernelcast.features.syntax.tree import Node


@dataclass(slots=True)
class Target:
    """Where `break` and `continue` go: a loop, or a switch."""

    guard_depth: int
    is_loop: bool
    continues: list[State] = field(default_factory=list)
    breaks: list[State] = field(default_factory=list)
    sources: frozenset[str] = frozenset()
    """Buffers on which it depends whether the loop is left."""
    entry: State | None = None
    number: Expr | Opaque = field(default_factory=Opaque)
    labels: tuple[int | None, ...] = ()
    """Numbers of a switch's labels; None is the default."""

    def condition_of(self, label: int | None) -> Condition:
        """Give the condition on which a switch goes to a label."""
        if isinstance(self.number, Opaque):
            return Unknown(tuple(sorted(self.number.sources)))
        if label is not None:
            return equal(self.number, label)
        others = (not_equal(self.number, one) for one in self.labels if one is not None)
        return conjunction(*others)


@dataclass(slots=True)
class Frame:
    """A function that is being run."""

    function: Node
    guard_depth: int
    loop_depth: int
    returns: list[tuple[State, Value]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    left: int = 0
    """How many jumps have left the paths that are being followed."""
