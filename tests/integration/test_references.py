import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

from kernelcast.features.analysis import infer_accesses
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import Argument, BufferArgument
from kernelcast.records.problem import Problem
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.problems import prepared_problem
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

ROOT = Path(__file__).parents[2]
REFERENCES = sorted(ROOT.glob("examples/*/reference.py"))
Values = list[np.ndarray | np.generic | None]


def load(path: Path) -> ModuleType:
    """Load a reference by its path."""
    spec = importlib.util.spec_from_file_location(f"reference_of_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needs_fp64(problem: Problem) -> bool:
    """Tell whether a problem's arguments are of double precision."""
    elements = [getattr(argument, "element", None) for argument in problem.arguments]
    return any(element is not None and element.base == "float64" for element in elements)


def read_values(
    session: DeviceSession, launch: OpenCLLaunch, arguments: tuple[Argument, ...]
) -> Values:
    """Read what the kernel is given: buffers as arrays, scalars, and None for local memory."""
    values: Values = []
    for held, described in zip(launch._scratch.arguments, arguments, strict=True):
        if isinstance(described, BufferArgument):
            lanes = described.element.stored_lanes
            shape = (described.count,) if lanes == 1 else (described.count, lanes)
            array = np.empty(shape, dtype=described.element.dtype)
            cl.enqueue_copy(session.queue, array, held)
            values.append(array)
        else:
            values.append(held if isinstance(held, (np.ndarray, np.generic)) else None)
    return values


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.parent.name)
def test_agrees_with_its_numpy_reference(session: DeviceSession, path: Path) -> None:
    """Computes on the device what the NumPy reference computes, and changes nothing else."""
    reference = load(path)
    problem_path = next(path.parent.glob("*.yaml"))
    problem = read_problem(problem_path, parameters=reference.SMALL)
    parameters = yaml.safe_load(problem_path.read_text())["parameters"] | reference.SMALL
    if needs_fp64(problem) and not session.description.has_fp64:
        pytest.skip(f"{session.description.id} has no double precision")
    inferred = infer_accesses(problem.kernel, len(problem.arguments))
    with prepared_problem(session, problem, OpenCLLaunch, seed=11, inferred=inferred) as launch:
        inputs = read_values(session, launch, problem.arguments)
        launch.time_whole()
        outputs = read_values(session, launch, problem.arguments)
    copies = [None if value is None else np.copy(value) for value in inputs]
    expected = reference.expected(copies, parameters)
    assert expected
    for index, (before, after) in enumerate(zip(inputs, outputs, strict=True)):
        if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
            continue
        if index in expected:
            wanted = np.asarray(expected[index])
            assert wanted.dtype == after.dtype
            compare(after.ravel(), wanted.ravel(), reference.RTOL)
        else:
            assert np.array_equal(before, after), f"argument {index} was changed"


def compare(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    """Compare element by element; integers and a tolerance of zero exactly."""
    if tolerance == 0.0 or found.dtype.kind in "iu":
        np.testing.assert_array_equal(found, wanted)
    else:
        # near zero the sum's own scale counts, not the element's
        scale = float(np.abs(wanted).mean())
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale)
