"""Which loads of loops compilers spare."""

from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.opencl.execution import Execution
from kernelcast.analytic.cpu.opencl.patterns import find_patterns
from kernelcast.analytic.cpu.opencl.repeated_loads import leave_out_repeated
from kernelcast.expressions import Expr, Symbol, SymbolKind, less
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.records.operations import OperationCounts
from support.opencl_cpu import make_launch

ROUNDS, VALUES = 16, 4
SIZE = Symbol(SymbolKind.SCALAR, "n")


def make_loop(name: str, trips: Expr) -> LoopFacts:
    """Make a loop of so many iterations."""
    number = Expr.symbol(Symbol(SymbolKind.LOOP, name))
    return LoopFacts(
        name=name, line=1, condition=less(number, trips), trip_count=trips, is_exact=True
    )


@pytest.mark.parametrize(
    ("moving", "trips", "executions"),
    [
        ("inner", Expr.constant(VALUES), VALUES),
        ("inner", Expr.symbol(SIZE), ROUNDS * VALUES),
        ("outer", Expr.symbol(SIZE), ROUNDS),
    ],
)
def test_values_are_kept_where_the_source_says_how_many(
    moving: str, trips: Expr, executions: int
) -> None:
    """Keeps few values of loops that are written out, and always what a loop leaves as it is."""
    launch = make_launch(["a:float32:1048576"], loads=["a[x]"], size=(4096,))
    loops = make_loop("outer", Expr.constant(ROUNDS)), make_loop("inner", trips)
    [access] = launch.accesses
    assert access.offset_bytes is not None
    row = 16384 * Expr.symbol(Symbol(SymbolKind.LOOP, moving))
    access = replace(access, offset_bytes=access.offset_bytes + row, loops=loops)
    launch = replace(
        launch, accesses=(access,), scalars={**launch.scalars, "n": VALUES},
        executed=OperationCounts(operations={}, memory={}),
    )  # fmt: skip
    [kept] = leave_out_repeated(find_patterns(launch, Execution(width=1)))
    assert kept.executions == pytest.approx(executions)
