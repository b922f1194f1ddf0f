"""Configurations are ranked alike by one process and by several."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.tuning import ranking
from kernelcast.tuning.ranking import rank, several_processes
from kernelcast.tuning.report import sort_configurations
from kernelcast.tuning.space import read_space
from support.builders import make_description


def test_processes_find_what_one_finds(
    problem_file: Path, machine: MachineDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same predictions, in whatever process."""
    monkeypatch.setattr(ranking, "_WORTH_PROCESSES", 1)
    space = read_space(problem_file)
    alone = rank(space, make_description(), machine)
    with several_processes(space) as executor:
        assert rank(space, make_description(), machine, executor=executor) == alone
    assert all(one.predicted_s for one in alone.values())


def test_what_cannot_be_modelled_is_no_obstacle(
    problem_file: Path, machine: MachineDescription
) -> None:
    """A kernel that the analysis does not find has no prediction, and the device may know it."""
    problem_file.write_text(problem_file.read_text().replace("kernel: scale", "kernel: other"))
    for one in rank(read_space(problem_file), make_description(), machine).values():
        assert one.predicted_s is None
        assert not one.obstacle
        assert one.limiter.startswith("not modelled: kernel 'other' is not in")


def test_a_machine_that_says_too_little_is_an_error(
    problem_file: Path, machine: MachineDescription
) -> None:
    """Once, and not for each configuration."""
    bare = replace(machine, instructions=())
    with pytest.raises(InputError, match="kernelcast calibrate"):
        rank(read_space(problem_file), make_description(), bare)
    strange = replace(machine, kind=DeviceKind.ACCELERATOR)
    found = rank(read_space(problem_file), make_description(), strange)
    assert all("there are models of CPUs and of GPUs" in one.limiter for one in found.values())


def test_order_is_measured_sampled_predicted_impossible(
    problem_file: Path, machine: MachineDescription
) -> None:
    """What is known best comes first, even if a prediction is shorter."""
    found = rank(read_space(problem_file), make_description(), machine)
    found[0] = replace(found[0], runs_s=(9.0,))
    found[1] = replace(found[1], sampled_s=8.0)
    found[2] = replace(found[2], obstacle="no")
    numbers = [one.number for one in sort_configurations(found)]
    assert numbers[:2] == [0, 1]
    assert numbers[-1] == 2
