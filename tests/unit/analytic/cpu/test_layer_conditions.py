import json
from pathlib import Path

import pytest

from kernelcast.analytic.cpu.layer_conditions import (
    LayerConditions,
    advise_blocking,
    list_transitions,
)
from kernelcast.analytic.cpu.machine import read_machine
from kernelcast.launches.machines import find_machine
from kernelcast.records.errors import InputError
from support.machines import IVY_BRIDGE
from support.reference_nests import make_nest, read_reference_nest

REFERENCE = Path(__file__).parents[4] / "../shared/reference/kerncraft"
CASES = json.loads((REFERENCE / "cases.json").read_text())
MACHINES = {
    "IvyBridgeEP_E5-2690v2": read_machine(find_machine("ivy-bridge-ep")),
    "SkylakeSP_Gold-6148": read_machine(find_machine("skylake-sp")),
}
NESTS = {name: read_reference_nest(name, kernel) for name, kernel in CASES["kernels"].items()}
FIVE_POINTS = make_nest(
    [("j", "1", "M - 1", 1), ("i", "1", "N - 1", 1)],
    {"a": ["M", "N"], "b": ["M", "N"]},
    [("a", "j - 1, i"), ("a", "j, i - 1"), ("a", "j, i + 1"), ("a", "j + 1, i")],
    [("b", "j, i")],
)
LONG_RANGE = NESTS["3d-long-range-stencil"]


@pytest.mark.parametrize("machine", sorted(MACHINES))
@pytest.mark.parametrize("kernel", NESTS)
def test_reproduces_every_transition_of_the_reference(machine: str, kernel: str) -> None:
    """Solves every layer condition to the text and the size of the reference tool."""
    names = ("level", "condition", "largest_value", "variable", "hits", "misses", "evicts",
             "tail_bytes")  # fmt: skip
    wanted = {
        tuple(tuple(row[name]) if isinstance(row[name], list) else row[name] for name in names)
        for row in CASES["lc_transitions"]
        if (row["machine"], row["kernel"]) == (machine, kernel)
    }
    got = {
        (
            one.level, one.condition, one.largest,
            one.variables if len(one.variables) > 1 else one.variables[0],
            one.hits, one.misses, one.evicts, one.tail_bytes,
        )
        for one in list_transitions(NESTS[kernel], MACHINES[machine])
    }  # fmt: skip
    assert got == wanted


def test_leaves_out_what_the_innermost_loop_does_not_move() -> None:
    """Ignores A[l][0], as the reference tool does, and says so."""
    nest = make_nest(
        [("l", "0", "s", 1), ("j", "0", "n", 1)],
        {"Y": ["s", "n"], "F": ["s", "n"], "A": ["s", "s"], "y": ["n"]},
        [("A", "l,0"), ("F", "0,j"), ("y", "j")], [("Y", "l,j")],
    )  # fmt: skip
    volumes = LayerConditions(nest, IVY_BRIDGE).predict({"s": 1000, "n": 10**6})
    assert volumes.levels[0].misses == 3
    assert any(note.startswith("A: the innermost loop") for note in volumes.notes)


def test_a_victim_cache_is_judged_alone() -> None:
    """Does not add the nearer cache's lines, as the reference tool, and says so."""
    copy = make_nest([("i", "0", "N", 1)], {"a": ["N"], "b": ["N"]}, [("b", "i")], [("a", "i")])
    found = LayerConditions(copy, MACHINES["SkylakeSP_Gold-6148"]).predict({"N": 1_850_000})
    assert found.levels[2].misses == 2
    assert any("victim" in note for note in found.notes)


def test_rows_that_meet_in_one_set_are_named() -> None:
    """Warns of the paper's pathological N = 1792, and not of N = 1015."""
    conditions = LayerConditions(LONG_RANGE, IVY_BRIDGE)
    assert conditions.conflicts({"M": 130, "N": 1015}) == ()
    assert conditions.conflicts({"M": 130, "N": 1792})[0].startswith("V: 13 of its lines")


def test_blocks_keep_what_a_cache_loses() -> None:
    """Advises a block for which the layer condition holds, and no larger one."""
    advice = advise_blocking(LONG_RANGE, IVY_BRIDGE, {"M": 130, "N": 1015})
    three = next(one for one in advice if (one.level, one.loop) == ("L3", "j"))
    # 11 planes of 1015 times the block, as 11*N**2 <= 3276800 says for squares.
    assert (three.block, three.misses_before, three.misses_after) == (3276800 // 11 // 1015, 11, 3)
    one = next(one for one in advice if (one.level, one.loop) == ("L1", "i"))
    assert (one.block, one.misses_after) == (4096 // 19, 11)
    assert "block j at 293" in str(three)
    assert advise_blocking(FIVE_POINTS, IVY_BRIDGE, {"M": 20, "N": 20}) == ()


@pytest.mark.parametrize(
    ("constants", "reason"),
    [
        ({"N": 100}, "no value for M; give each one \\(-D M 1000\\)"),
        ({"M": 100, "N": 0}, "N is 0; expected at least 1"),
        ({"M": 100, "N": -4}, "N is -4"),
        ({"M": 100, "N": 2}, "the loop over i never runs for M=100, N=2; give larger sizes"),
    ],
)
def test_refuses_sizes_that_make_no_loop(constants: dict[str, int], reason: str) -> None:
    """Says what is missing or too small."""
    with pytest.raises(InputError, match=reason):
        LayerConditions(FIVE_POINTS, IVY_BRIDGE).predict(constants)


def test_solves_for_sizes_of_the_nest_only() -> None:
    """Names the sizes there are, and says so where there is no formula."""
    with pytest.raises(InputError, match="has no size K; it has M, N"):
        list_transitions(FIVE_POINTS, IVY_BRIDGE, size="K")
    column = make_nest([("i", "0", "N", 1)], {"a": ["N", "N"]}, [("a", "i, 0")], [])
    with pytest.raises(InputError, match="no formula"):
        list_transitions(column, IVY_BRIDGE)
