"""A loop nest as the analytic CPU model sees it: loops, arrays and what an iteration touches."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelcast.expressions import Expr
from kernelcast.records.errors import InputError
from kernelcast.records.operations import OperationCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class NestLoop:
    """One loop of a nest: ``for (name = start; name < stop; name += step)``.

    Parameters
    ----------
    name : str
        Its variable; expressions name it as ``Symbol(SymbolKind.LOOP, name)``, which stands for
        the variable's value, not for the number of the iteration.
    start, stop : Expr
        First value, and the value it does not reach any more, over constants and the variables
        of the loops around it. A loop that counts down has a negative step.
    step : int
        Not 0.
    line : int
        Where it stands; 0 if there is no source.
    """

    name: str
    start: Expr
    stop: Expr
    step: int = 1
    line: int = 0

    def __post_init__(self) -> None:
        if self.step == 0:
            msg = f"loop over {self.name}: its step is 0; expected another whole number"
            raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class NestArray:
    """An array of a nest.

    Parameters
    ----------
    name : str
        Its name.
    element_bytes : int
        Bytes of one element.
    element_type : str
        C type of one element.
    dimensions : tuple of Expr
        Elements per dimension, slowest first, over constants; empty if it is not known where it
        ends (a pointer).
    """

    name: str
    element_bytes: int
    element_type: str = "double"
    dimensions: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NestAccess:
    """A load or store of one iteration of the innermost loop.

    Parameters
    ----------
    array : str
        The array.
    offset_bytes : Expr
        From the start of the array, in bytes, over loop variables (``SymbolKind.LOOP``) and
        constants (``SymbolKind.SCALAR``).
    is_store : bool
        Whether it writes. ``a[i] += x`` is a load and a store.
    bytes : int
        Bytes that it moves.
    text : str
        The expression as written.
    line : int
        Where it stands; 0 if there is no source.
    """

    array: str
    offset_bytes: Expr
    is_store: bool
    bytes: int
    text: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNest:
    """A perfect loop nest.

    Parameters
    ----------
    name : str
        For messages and tables.
    loops : tuple of NestLoop
        Outermost first.
    arrays : tuple of NestArray
        In the order of their declaration.
    accesses : tuple of NestAccess
        In the order in which an iteration executes them.
    executed : OperationCounts
        Operations of one iteration of the innermost loop.
    constants : mapping of str to int
        Values of the constants that expressions name.
    chain : tuple of str
        Operations that each iteration must wait for, one after the other (a sum's addition);
        empty if iterations are independent.
    notes : tuple of str
        What was assumed.
    """

    name: str
    loops: tuple[NestLoop, ...]
    arrays: tuple[NestArray, ...]
    accesses: tuple[NestAccess, ...]
    executed: OperationCounts
    constants: Mapping[str, int] = field(default_factory=dict)
    chain: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
