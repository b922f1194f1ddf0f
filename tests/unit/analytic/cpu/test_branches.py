"""Traffic and time of loops with branches: layer conditions beside the simulator."""

from dataclasses import replace

import pytest

from kernelcast.analytic.cpu.layer_conditions import LayerConditions
from kernelcast.analytic.cpu.simulated import SimulatedVolumes
from kernelcast.features.loop_nest import read_loop_nest
from kernelcast.launches.modelling.cpu_loops import LoopModel
from support.machines import IVY_BRIDGE

PLANE = "double a[M][N], b[M][N]; for (int j = 1; j < M - 1; j++) for (int i = 1; i < N - 1; i++) "
ROW = "double a[N], b[N], c[N], s, t; for (int i = 0; i < N; i++) "
NESTS = {
    "borders apart": (
        PLANE + "if (i > 1 && i < N - 2) b[j][i] = a[j - 1][i] + a[j + 1][i]; else b[j][i] = 0;",
        {"M": 100, "N": 1000},
    ),
    "half of the rows": (
        PLANE + "if (j < M / 2) b[j][i] = a[j - 1][i] + a[j + 1][i];", {"M": 2000, "N": 1000},
    ),
    "every second": (ROW + "{ if (i % 2) continue; s += a[i]; }", {"N": 200_000}),
    "every sixteenth": (ROW + "if (i % 16 == 0) s += a[i];", {"N": 200_000}),
    "the first quarter": (ROW + "if (4 * i < N) c[i] = a[i]; else c[i] = b[i];", {"N": 400_000}),
}  # fmt: skip


@pytest.mark.parametrize("name", NESTS)
def test_misses_are_those_of_a_simulation(name: str) -> None:
    """Conditions on loop variables are counted as the simulated caches see them."""
    source, constants = NESTS[name]
    nest = read_loop_nest(source, {})
    found = LayerConditions(nest, IVY_BRIDGE).predict(constants)
    expected = SimulatedVolumes(nest, IVY_BRIDGE).predict(constants)
    for level in ("L1", "L2"):
        one, other = found.level(level), expected.level(level)
        assert one is not None
        assert other is not None
        assert one.misses == pytest.approx(other.misses, rel=0.03)
        assert one.evicts == pytest.approx(other.evicts, rel=0.03, abs=0.01)


@pytest.mark.parametrize("taken", [None, 0.0, 0.05, 0.5, 1.0])
def test_random_decisions_are_those_of_a_simulation(taken: float | None) -> None:
    """Lines that decisions on data touch at random are counted as drawn ones."""
    nest = read_loop_nest(ROW + "c[i] = a[i] > t ? b[i] : 0;", {})
    nest = replace(nest, taken=taken)
    constants = {"N": 200_000}
    found = LayerConditions(nest, IVY_BRIDGE).predict(constants).level("L1")
    expected = SimulatedVolumes(nest, IVY_BRIDGE).predict(constants).level("L1")
    assert found is not None
    assert expected is not None
    assert found.misses == pytest.approx(expected.misses, rel=0.02)
    assert found.evicts == pytest.approx(expected.evicts, rel=0.02)


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
    volumes = LayerConditions(always, IVY_BRIDGE).predict(constants)
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


@pytest.mark.parametrize("predictor", [LayerConditions, SimulatedVolumes])
def test_a_step_may_be_set_later(
    predictor: type[LayerConditions] | type[SimulatedVolumes],
) -> None:
    """A loop that steps by a constant is the loop that steps by its value."""
    tile = (
        "double a[N][N], b[N][N]; for (int ii = 0; ii < N; ii += {step}) for (int j = 0; j < N; "
        "j++) for (int i = ii; i < min(ii + {step}, N); i++) a[j][i] = b[i][j];"
    )
    for size in (24, 32):
        open_step, fixed = (
            predictor(read_loop_nest(tile.format(step=one), {}), IVY_BRIDGE) for one in ("B", size)
        )
        found = open_step.predict({"N": 200, "B": size})
        assert found.levels == fixed.predict({"N": 200}).levels
