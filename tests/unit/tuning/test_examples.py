"""The kernels to tune that are shipped as examples."""

from pathlib import Path

import pytest

from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.launches.modelling.launches import model_kernel
from kernelcast.records.machine import MachineDescription
from kernelcast.tuning.cpu_cost import cost_launch
from kernelcast.tuning.space import read_space

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(ROOT.glob("examples/tuning/*/*.yaml"))
FEWEST = 60


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_can_be_tuned(path: Path, machine: MachineDescription) -> None:
    """It has enough configurations, all can be launched, the model understands first and last."""
    space = read_space(path)
    assert len(space.configurations) >= FEWEST
    problems = [one.problem for one in space.configurations]
    assert all(problems)
    for problem in (problems[0], problems[-1]):
        assert problem is not None
        kernel = model_kernel(problem)
        assert not kernel.facts.gaps
        assert cost_launch(kernel, problem.ndrange, read_device(machine)).seconds > 0


def test_examples_are_listed() -> None:
    """Each has a row in the folder's table."""
    listed = (ROOT / "examples/tuning/README.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) >= 5
    assert all(f"({path.parent.name}/{path.name})" in listed for path in EXAMPLES)
