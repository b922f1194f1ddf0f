from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.machine_file import write_machine
from kernelcast.launches.machines import find_machine, list_machines, machine_path
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MachineFileError, UnknownMachineError
from kernelcast.records.machine import CacheFacts, MachineDescription
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.reports.machine import compare_machines

MACHINE = MachineDescription(id="pocl-cpu-1234", name="Here", kind=DeviceKind.CPU)


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's data out of the tests."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path / "data"))


def test_the_data_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes KERNELCAST_DATA, else the place that XDG names, else the usual one."""
    monkeypatch.setenv("KERNELCAST_DATA", "/a/b")
    assert data_folder() == Path("/a/b")
    monkeypatch.delenv("KERNELCAST_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", "/x")
    assert data_folder() == Path("/x/kernelcast")
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    monkeypatch.setenv("HOME", "/h")
    assert data_folder() == Path("/h/.local/share/kernelcast")


def test_finds_by_id_name_beginning_and_file(tmp_path: Path) -> None:
    """Finds calibrated ids, shipped names, unique beginnings and files."""
    write_machine(machine_path(MACHINE.id), MACHINE)
    assert find_machine("pocl-cpu-1234") == MACHINE
    assert find_machine("POCL") == MACHINE
    assert find_machine("a100").id == "a100"
    assert find_machine("A100 80GB").id == "a100-80gb"
    assert find_machine("rx6900").id == "rx-6900-xt"
    write_machine(tmp_path / "mine.yaml", replace(MACHINE, name="Mine"))
    assert find_machine(str(tmp_path / "mine.yaml")).name == "Mine"
    assert find_machine(tmp_path / "mine.yaml").name == "Mine"


def test_what_was_calibrated_here_goes_before_what_is_shipped() -> None:
    """Prefers a description of this machine's own device to a shipped one of that name."""
    write_machine(machine_path("v100"), replace(MACHINE, id="v100", name="Own"))
    assert find_machine("v100").name == "Own"
    assert [one.is_shipped for one in list_machines()][:2] == [False, True]


def test_unknown_and_ambiguous_names_list_what_there_is() -> None:
    """Says which descriptions there are and how to make one."""
    write_machine(machine_path(MACHINE.id), MACHINE)
    with pytest.raises(UnknownMachineError, match="pocl-cpu-1234") as caught:
        find_machine("b200")
    for part in ("no machine description 'b200'", "v100", "kernelcast calibrate", "data"):
        assert part in str(caught.value)
    with pytest.raises(UnknownMachineError, match="may be mi300a, mi300x; give more"):
        find_machine("mi300")
    with pytest.raises(UnknownMachineError, match="no machine description ''"):
        find_machine("")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    """Does not skip a file that cannot be read."""
    machine_path("x").parent.mkdir(parents=True)
    machine_path("x").write_text("schema: [")
    with pytest.raises(MachineFileError, match=r"x\.yaml:2"):
        find_machine("x")
    with pytest.raises(MachineFileError, match="cannot be read"):
        find_machine(tmp_path / "none.yaml")


def test_comparison_pairs_numbers_and_judges_intervals() -> None:
    """Gives each number of both, their ratio, and whether the intervals overlap."""

    def make(size: int, low: int, high: int) -> MachineDescription:
        trait = Trait(value=size, low=low, high=high, source=TraitSource.MEASURED)
        caches = (CacheFacts(name="L1", size_bytes=trait),)
        return replace(MACHINE, caches=caches)

    (near,) = compare_machines(make(100, 90, 110), make(120, 105, 130))
    assert (near.name, near.ratio, near.is_within) == ("caches.L1.size_bytes", 1.2, True)
    (far,) = compare_machines(make(100, 90, 110), make(150, 140, 160))
    assert far.is_within is False
    (lone,) = compare_machines(make(100, 90, 110), MACHINE)
    assert (lone.second, lone.ratio, lone.is_within) == (None, None, None)
