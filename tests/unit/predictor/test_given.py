from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernelcast
from kernelcast.predictor.predictor import Predictor
from kernelcast.records.errors import InputError
from kernelcast.training_data.store import Store
from support.fake_executor import DEVICE, PROBLEM, FakeExecutor, make_predictor

_PATH = "examples/triad/triad.yaml"
_READ = r"give a Problem, which kernelcast.read_problem\(path\) reads"


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda one: one.estimate(_PATH, DEVICE), f"path {_PATH!r} given; {_READ}"),
        (lambda one: one.estimate(Path(_PATH), DEVICE), f"path {_PATH!r} given; {_READ}"),
        (lambda one: one.estimate(None, DEVICE), f"NoneType given; {_READ}"),
        (lambda one: one.estimate(PROBLEM, None), "device: NoneType given; give an id"),
        (lambda one: one.estimate_many(PROBLEM), r"launches: Problem given; .*\[problem\]"),
        (lambda one: one.estimate_many(_PATH), f"launches: {_PATH!r} given; give a sequence"),
        (lambda one: one.estimate_many([_PATH]), f"path {_PATH!r} given; {_READ}"),
        (lambda one: one.estimate_many([PROBLEM], DEVICE.id), "give a sequence, such as"),
        (lambda one: one.observe(PROBLEM, 1.0), "launch: Problem given; give the Estimate"),
        (lambda one: one.observe(_PATH, 1.0), "launch: str given; give the Estimate"),
    ],
)
def test_what_is_meant_is_said(
    executor: FakeExecutor, store: Store, ask: Callable[[Any], object], complaint: str
) -> None:
    """Of a predictor that is given another kind of thing."""
    with pytest.raises(InputError, match=complaint):
        ask(make_predictor(executor, store))


def test_a_time_is_a_number(executor: FakeExecutor, store: Store) -> None:
    """A text is none."""
    predictor = make_predictor(executor, store)
    answer = predictor.estimate(PROBLEM, DEVICE)
    with pytest.raises(InputError, match="measured time: str given; give a number of seconds"):
        predictor.observe(answer, "1.0")  # type: ignore[arg-type]


def test_one_device_is_no_list_of_devices() -> None:
    """Its letters would be taken for ids."""
    with pytest.raises(InputError, match=r"devices: 'pocl' given; give a sequence.*\['pocl'\]"):
        Predictor("pocl")
    with pytest.raises(InputError, match=r"devices: 'pocl' given; give a sequence.*\['pocl'\]"):
        kernelcast.estimate_problem(_PATH, devices="pocl")


def test_a_problem_is_no_problem_file() -> None:
    """The message names the call that takes one."""
    with pytest.raises(InputError, match=r"Problem given; .* kernelcast\.Predictor\(\)\.estimate"):
        kernelcast.estimate_problem(PROBLEM)  # type: ignore[arg-type]
