import os
import re
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kernelcast.launches.machines import (
    dump_machine,
    list_machines,
    machine_to_plain,
    read_machine,
    write_machine,
)
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError, MachineFileError
from kernelcast.records.machine import (
    SCHEMA,
    CacheFacts,
    Curve,
    MachineDescription,
)

PATH = Path(tempfile.mkdtemp()) / "m.yaml"
HEAD = f"schema: {SCHEMA}\nid: a\nname: A\nkind: gpu\n"
SHIPPED = [one for one in list_machines() if one.is_shipped]


def parse(text: str) -> MachineDescription:
    PATH.write_text(text, encoding="utf-8")
    return read_machine(PATH)


def test_a_description_survives_its_file() -> None:
    """Reads back exactly what was written; any YAML reader takes its numbers for numbers. Refuses
    to write an infinite number instead of a file that cannot be read."""
    numbers = [1e-300, 0.1, 1 / 3, 1.0, 12345678901234567.0, 9e18]
    traits = [
        Trait(value=one, source=source, low=low, high=low and 2 * one, origin=origin)
        for one, source, low, origin in zip(
            numbers,
            [*TraitSource] * 2,
            [None, 0.05] * 3,
            ["", "a: #b", "'\"", "é\n", "~", "1"],
            strict=False,
        )
    ]
    machine = MachineDescription(
        id="1e5", name="- {null}: \u2028", kind=DeviceKind.GPU, driver="yes", clock_hz=traits[0],
        caches=(CacheFacts(name="L1", is_victim=False),),
        costs={f"cost_{place}_s": trait for place, trait in enumerate(traits)},
        curves=(Curve(name="walk/a", x_name="x", y_name="y", x=(-9e18, 0.1), y=(1e-7, 3.0)),),
        not_obtained={"no: ": "'", "\t": "[]"},
    )  # fmt: skip
    text = dump_machine(machine)
    assert parse(text) == machine
    for found in yaml.safe_load(text)["costs"].values():
        assert isinstance(found["value"] if isinstance(found, dict) else found, int | float)
    clock = Trait(value=float("inf"), source=TraitSource.MEASURED)
    with pytest.raises(MachineFileError, match="inf: machine descriptions hold finite numbers"):
        dump_machine(replace(machine, clock_hz=clock))


@pytest.mark.parametrize("known", SHIPPED, ids=lambda one: one.name)
def test_shipped_descriptions_are_readable_and_say_who_told(known: object) -> None:
    """Ships descriptions of which each number names its source."""
    machine = read_machine(known.path)  # type: ignore[attr-defined]
    assert machine.id == known.name  # type: ignore[attr-defined]
    assert parse(dump_machine(machine)) == machine
    for trait in _traits(machine_to_plain(machine)):
        assert trait["source"] in {"published", "computed"}
        assert trait["origin"]
    assert machine.memory("global") is not None
    assert machine.cache("L1") is not None


def _traits(plain: object) -> list[dict[str, object]]:
    if not isinstance(plain, dict):
        return []
    if "source" in plain:
        return [plain]
    return [one for value in plain.values() for one in _traits(value)]


def test_a_plain_number_is_assumed() -> None:
    """Takes a number that a person typed for an assumption, arithmetic included."""
    machine = parse(HEAD + "clock_hz: 1.4e9\nlocal_memory_bytes: 48 * 1024\n")
    assert machine.clock_hz == Trait(value=1.4e9, source=TraitSource.ASSUMED)
    assert machine.local_memory_bytes == Trait(value=49152, source=TraitSource.ASSUMED)
    assert "clock_hz: 1.4e+09\n" in dump_machine(machine)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "m.yaml:1: the file is empty; a machine description needs"),
        ("id: a\n", "m.yaml:1: machine description: the key `schema` is missing"),
        ("schema: kernelcast-machine-9\n", "m.yaml:1: schema: expected kernelcast-machine-1"),
        (f"schema: {SCHEMA}\nid: a\nname: A\n", "the key `kind` is missing"),
        (HEAD.replace("gpu", "gpo"), "m.yaml:4: kind: expected one of cpu, gpu"),
        (HEAD + "clock: 1\n", "m.yaml:5: clock: unknown key, did you mean"),
        (HEAD + "clock_hz: .nan\n", "m.yaml:5: clock_hz: expected a number"),
        (HEAD + "compute_units: 1.5\n", "m.yaml:5: compute_units: expected a whole number"),
        (HEAD + "compute_units: {value: 2}\n", "compute_units: the key `source` is missing"),
        (
            HEAD + "caches:\n  L1:\n    latency_s: {value: 1, source: guessed}\n",
            "m.yaml:7: caches.L1.latency_s.source: expected one of reported, measured",
        ),
        (
            HEAD + "caches:\n  L1:\n    latency_s: {value: 1, source: measured, low: 2}\n",
            "m.yaml:7: caches.L1.latency_s: expected low <= value <= high, found 2 <= 1.0",
        ),
        (HEAD + "caches:\n  L1: {is_victim: maybe}\n", "caches.L1.is_victim: expected true or"),
        (HEAD + "instructions: {fp23: {}}\n", "instructions.fp23: instruction 'fp23' is not known"),
        (
            HEAD + "memories: {global: {load_bytes_per_s: {four: 1}}}\n",
            "load_bytes_per_s.four: expected a whole number of at least 1 as the key",
        ),
        (HEAD + "clock_hz: 0\n", "clock_hz: expected a number above 0, found 0"),
        (
            HEAD + "memories: {global: {load_bytes_per_s: {4: 0}}}\n",
            "per_s.4: expected a number above 0",
        ),
        (HEAD + "curves: {a: {x_name: x, y_name: y, x: [1]}}\n", "the key `y` is missing"),
        (
            HEAD + "curves: {a: {x_name: x, y_name: y, x: [1], y: [1, 2]}}\n",
            "curves.a: curve a: columns of [1, 2] points; give all the same",
        ),
        ("[" * 5_000, "m.yaml:1: nested too deeply"),
        ("a: [", "m.yaml:1:5: not valid YAML"),
    ],
)
def test_complaints_name_file_line_and_key(text: str, said: str) -> None:
    """Refuses what cannot be used, with the place and what was expected."""
    with pytest.raises(MachineFileError, match=re.escape(said)):
        parse(text)


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """Makes the folder, replaces the file at once, and leaves no other behind."""
    machine = MachineDescription(id="a", name="A", kind=DeviceKind.CPU)
    path = tmp_path / "new" / "a.yaml"
    write_machine(path, machine)
    write_machine(path, replace(machine, name="B"))
    assert read_machine(path).name == "B"
    assert [one.name for one in path.parent.iterdir()] == ["a.yaml"]
    with pytest.raises(InputError, match="cannot be written"):
        write_machine(path / "b.yaml", machine)


def test_other_users_can_read_descriptions_in_a_closed_folder(tmp_path: Path) -> None:
    """A confined process of a service that root started is another user's."""
    path = tmp_path / "data" / "machines" / "a.yaml"
    before = os.umask(0o077)
    try:
        write_machine(path, parse(HEAD))
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent, path.parents[1])]
    assert modes == [0o644, 0o755, 0o700]
