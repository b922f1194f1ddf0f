from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.estimate import estimate_cpu
from kernelcast.expressions import Expr, Symbol, SymbolKind
from kernelcast.expressions.accesses import LoopFacts
from kernelcast.expressions.conditions import less
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.traits import Trait, TraitSource
from support.opencl_cpu import make_launch, make_machine

EIGHT = Trait(value=8, source=TraitSource.REPORTED)


def make_associative(machine: MachineDescription) -> MachineDescription:
    """Give caches eight ways."""
    return replace(machine, caches=tuple(replace(one, ways=EIGHT) for one in machine.caches))


def walk_columns(columns: int, rows: int = 2000) -> AnalyticEstimate:
    """Estimate a launch whose work-items go down columns."""
    launch = make_launch([f"a:float32:{columns * rows}"], loads=["a[x]"], size=(1024,))
    number = Expr.symbol(Symbol(SymbolKind.LOOP, "k"))
    down = LoopFacts(
        name="k", line=1, condition=less(number, Expr.constant(rows)),
        trip_count=Expr.constant(rows), is_exact=True,
    )  # fmt: skip
    [access] = launch.accesses
    assert access.offset_bytes is not None
    offset = access.offset_bytes + 4 * columns * number
    walk = replace(access, offset_bytes=offset, loops=(down,))
    return estimate_cpu(replace(launch, accesses=(walk,)), make_associative(make_machine(width=8)))


def test_columns_a_power_of_two_apart_are_loaded_again_by_each_vector() -> None:
    """Loads lines once for both vectors in them, unless their rows meet in few sets."""
    even, odd = walk_columns(2048), walk_columns(2064)
    assert even.volumes["DRAM_to_L2"] == pytest.approx(2 * odd.volumes["DRAM_to_L2"])
    assert even.limiters["latency"] > odd.limiters["latency"] == 0.0
