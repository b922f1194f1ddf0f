"""Layer conditions beside the reference's, and beside simulated caches where it is silent."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.analytic.cpu.layer_conditions import (
    advise_blocking,
    list_conflicts,
    list_transitions,
    predict_by_layers,
)
from kernelcast.analytic.cpu.machine import CpuCache, CpuMachine, StreamRates, read_machine
from kernelcast.analytic.cpu.simulated import predict_by_simulation, simulate_nest
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.cpu_loops import LoopModel
from kernelcast.records.cache_volumes import CacheVolumes
from kernelcast.records.errors import InputError
from support.machines import IVY_BRIDGE

REFERENCE = Path(__file__).parents[4] / "../shared/reference/kerncraft"
CASES = json.loads((REFERENCE / "cases.json").read_text())
MACHINES = {
    "IvyBridgeEP_E5-2690v2": read_machine(find_machine("ivy-bridge-ep")),
    "SkylakeSP_Gold-6148": read_machine(find_machine("skylake-sp")),
}
LISTINGS = Path(__file__).parents[3] / "data/loop_nests"
NESTS = {
    name: read_loop_nest((LISTINGS / f"{name}.c").read_text(), {}) for name in CASES["kernels"]
}
PLANE = "double a[M][N], b[M][N]; for (int j = 1; j < M - 1; j++) for (int i = 1; i < N - 1; i++) "
ROW = "double a[N], b[N], c[N], s, t; for (int i = 0; i < N; i++) "
CROSS = "b[j][i] = a[j-1][i] + a[j][i-1] + a[j][i+1] + a[j+1][i];"
FIVE_POINTS = read_loop_nest(PLANE + CROSS, {})
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
    nest = read_loop_nest(
        "double Y[s][n], F[s][n], A[s][s], y[n]; for (int l = 0; l < s; l++) "
        "for (int j = 0; j < n; j++) Y[l][j] = A[l][0] * F[0][j] + y[j];", {},
    )  # fmt: skip
    volumes = predict_by_layers(nest, IVY_BRIDGE, {"s": 1000, "n": 10**6})
    assert volumes.levels[0].misses == 3
    assert any(note.startswith("A: the innermost loop") for note in volumes.notes)


def test_a_victim_cache_is_judged_alone() -> None:
    """Does not add the nearer cache's lines, as the reference tool, and says so."""
    copy = read_loop_nest(ROW + "a[i] = b[i];", {})
    found = predict_by_layers(copy, MACHINES["SkylakeSP_Gold-6148"], {"N": 1_850_000})
    assert found.levels[2].misses == 2
    assert any("victim" in note for note in found.notes)


def test_rows_that_meet_in_one_set_are_named() -> None:
    """Warns of the paper's pathological N = 1792, and not of N = 1015."""
    assert list_conflicts(LONG_RANGE, IVY_BRIDGE, {"M": 130, "N": 1015}) == ()
    [note, *_] = list_conflicts(LONG_RANGE, IVY_BRIDGE, {"M": 130, "N": 1792})
    assert note.startswith("V: 13 of its lines")


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
        predict_by_layers(FIVE_POINTS, IVY_BRIDGE, constants)


def test_solves_for_sizes_of_the_nest_only() -> None:
    """Names the sizes there are, and says so where there is no formula."""
    with pytest.raises(InputError, match="has no size K; it has M, N"):
        list_transitions(FIVE_POINTS, IVY_BRIDGE, size="K")
    column = read_loop_nest("double a[N][N], s; for (int i = 0; i < N; i++) s += a[i][0];", {})
    with pytest.raises(InputError, match="no formula"):
        list_transitions(column, IVY_BRIDGE)


SIZES = (2048, 8192, 65536)
MACHINE = CpuMachine(
    id="small", name="small", cores=1, clock_hz=1e9,
    caches=tuple(
        CpuCache(name=f"L{place}", size_bytes=size, line_bytes=64, ways=size // 64)
        for place, size in enumerate(SIZES, start=1)
    ),
    streams=StreamRates(),
)  # fmt: skip
MATRICES = "double A[N][N], B[N][N], C[N][N]; "
PRODUCT = "C[i][j] += A[i][k] * B[k][j];"
RUN = "for (int {0} = 0; {0} < N; {0}++) "
SOURCES = {
    "step of two": (PLANE.replace("i++", "i += 2") + CROSS, {"M": 40, "N": 200}),
    "step of three": (PLANE.replace("i++", "i += 3") + CROSS, {"M": 40, "N": 301}),
    "every other row": (PLANE.replace("j++", "j += 2") + CROSS.replace(";", " + a[j][i];"),
                        {"M": 60, "N": 200}),
    "backwards": (PLANE + "b[j][i] = a[j-1][N-i] + a[j+1][N-i];", {"M": 40, "N": 200}),
    "down the columns": (
        "double a[M][N], b[M][N]; for (int i = 1; i < N - 1; i++) "
        "for (int j = 1; j < M - 1; j++) " + CROSS, {"M": 40, "N": 100},
    ),
    "two stores": (PLANE + "{ b[j][i] = a[j][i]; b[j+1][i] = a[j][i]; }", {"M": 40, "N": 200}),
    "transposition": (
        MATRICES + RUN.format("i") + RUN.format("j") + "B[i][j] = A[j][i];", {"N": 136},
    ),
    "matrix product": (MATRICES + "".join(map(RUN.format, "ijk")) + PRODUCT, {"N": 36}),
    "matrix product by rows": (MATRICES + "".join(map(RUN.format, "ikj")) + PRODUCT, {"N": 36}),
    "convolution": (
        "double x[N + K], w[K], s; " + RUN.format("i") + "for (int k = 0; k < K; k++) "
        "s += x[i + k] * w[k];", {"N": 2000, "K": 16},
    ),
    "tiles": (
        "double a[M][N], b[M][N]; for (int t = 1; t < N - 1; t += 320) for (int j = 1; j < M - 1; "
        "j++) for (int i = t; i < t + 320; i++) " + CROSS, {"M": 40, "N": 642},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_agrees_with_a_simulated_cache(name: str) -> None:
    """Counts misses and evictions of strided, transposed, tiled and repeated loops within 6 %."""
    source, constants = SOURCES[name]
    nest = read_loop_nest(source, {})
    volumes = predict_by_layers(nest, MACHINE, constants)
    moved = tuple(one for one in nest.accesses if not one.strides[-1].is_zero)
    for level, size in zip(volumes.levels, SIZES, strict=False):
        cache = CpuCache(name="L1", size_bytes=size, line_bytes=64, ways=size // 64)
        simulated = simulate_nest(replace(nest, accesses=moved), [cache], constants).levels[0]
        assert level.misses == pytest.approx(simulated.misses, rel=0.06, abs=0.06)
        assert level.evicts == pytest.approx(simulated.evicts, rel=0.06, abs=0.06)


BRANCHES = {
    "borders apart": (
        PLANE + "if (i > 1 && i < N - 2) b[j][i] = a[j - 1][i] + a[j + 1][i]; else b[j][i] = 0;",
        {"M": 100, "N": 1000}, None,
    ),
    "half of the rows": (
        PLANE + "if (j < M / 2) b[j][i] = a[j - 1][i] + a[j + 1][i];", {"M": 2000, "N": 1000}, None,
    ),
    "every second": (ROW + "{ if (i % 2) continue; s += a[i]; }", {"N": 200_000}, None),
    "every sixteenth": (ROW + "if (i % 16 == 0) s += a[i];", {"N": 200_000}, None),
    "the first quarter": (
        ROW + "if (4 * i < N) c[i] = a[i]; else c[i] = b[i];", {"N": 400_000}, None,
    ),
    **{
        f"decisions {taken}": (ROW + "c[i] = a[i] > t ? b[i] : 0;", {"N": 200_000}, taken)
        for taken in (None, 0.0, 0.05, 0.5, 1.0)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", BRANCHES)
def test_conditions_are_those_of_a_simulation(name: str) -> None:
    """Conditions on loop variables are counted as the simulated caches see them, lines that
    decisions on data touch at random as drawn ones."""
    source, constants, taken = BRANCHES[name]
    nest = replace(read_loop_nest(source, {}), taken=taken)
    found, expected = (
        predict(nest, IVY_BRIDGE, constants).levels[:2]
        for predict in (predict_by_layers, predict_by_simulation)
    )
    for one, other in zip(found, expected, strict=True):
        assert one.misses == pytest.approx(other.misses, rel=0.03, abs=0.01)
        assert one.evicts == pytest.approx(other.evicts, rel=0.03, abs=0.01)


def test_an_answer_lies_between_both_sides() -> None:
    """Least and most enclose every share, and the mask is the most."""
    nest = read_loop_nest(ROW + "if (a[i] > t) c[i] = b[i] * a[i];", {})
    constants = {"N": 4_000_000}
    ends = LoopModel(nest=nest, machine=IVY_BRIDGE).predict(constants)
    assert ends.least_cycles < ends.most_cycles == ends.cycles
    before = 0.0
    for taken in (0.0, 0.01, 0.2, 1.0):
        model = LoopModel(nest=replace(nest, taken=taken), machine=IVY_BRIDGE)
        found = model.predict(constants)
        assert ends.least_cycles <= found.cycles <= ends.most_cycles
        assert found.cycles >= before
        before = found.cycles
    always = read_loop_nest(ROW + "c[i] = b[i] * a[i];", {})
    volumes = predict_by_layers(always, IVY_BRIDGE, constants)
    assert ends.volumes.levels == volumes.levels


def test_masks_are_for_the_innermost_loop() -> None:
    """What a condition of an outer loop leaves out is not executed, with masks or without."""
    constants = {"M": 400, "N": 1000}
    times = [
        LoopModel(
            nest=read_loop_nest(PLANE + f"if ({condition}) b[j][i] = b[j][i] * a[j][i];", {}),
            machine=IVY_BRIDGE,
        ).predict(constants).in_core
        for condition in ("j >= 1", "4 * j < M", "4 * i < N")
    ]  # fmt: skip
    whole, rows, columns = (one.overlapping for one in times if one is not None)
    assert rows == pytest.approx(whole / 4, rel=0.02)
    assert columns == whole


@pytest.mark.parametrize("predict", [predict_by_layers, predict_by_simulation])
def test_a_step_may_be_set_later(predict: Callable[..., CacheVolumes]) -> None:
    """A loop that steps by a constant is the loop that steps by its value."""
    tile = (
        "double a[N][N], b[N][N]; for (int ii = 0; ii < N; ii += {step}) for (int j = 0; j < N; "
        "j++) for (int i = ii; i < min(ii + {step}, N); i++) a[j][i] = b[i][j];"
    )
    for size in (24, 32):
        open_step, fixed = (
            predict(read_loop_nest(tile.format(step=one), {}), IVY_BRIDGE, {"N": 200, "B": size})
            for one in ("B", size)
        )
        assert open_step.levels == fixed.levels
