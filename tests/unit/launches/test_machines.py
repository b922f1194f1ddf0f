import math
import os
import re
import shutil
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kernelcast.features.vector import combine
from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.machines import (
    dump_machine,
    find_machine,
    find_sound_machine,
    find_stand_in,
    list_machines,
    machine_path,
    machine_to_plain,
    model_own_launch,
    read_machine,
    write_machine,
)
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import (
    InputError,
    KernelcastError,
    MachineFileError,
    UnknownMachineError,
)
from kernelcast.records.machine import (
    SCHEMA,
    CacheFacts,
    Curve,
    MachineDescription,
)
from kernelcast.reports.machine import compare_machines
from support.builders import make_description
from support.problems import buffer_of, read_example, write_problem

MACHINE = MachineDescription(id="pocl-cpu-1234", name="Here", kind=DeviceKind.CPU)


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    write_machine(machine_path(MACHINE.id), MACHINE)
    assert find_machine("pocl-cpu-1234") == MACHINE
    assert find_machine("POCL") == MACHINE
    assert find_machine("a100").id == "a100"
    assert find_machine("A100 80GB").id == "a100-80gb"
    assert find_machine("rx6900").id == "rx-6900-xt"
    write_machine(tmp_path / "mine.yaml", replace(MACHINE, name="Mine"))
    assert find_machine(str(tmp_path / "mine.yaml")).name == "Mine"
    assert find_machine(tmp_path / "mine.yaml").name == "Mine"
    # What was calibrated here goes before what is shipped.
    write_machine(machine_path("v100"), replace(MACHINE, id="v100", name="Own"))
    assert find_machine("v100").name == "Own"
    assert [one.is_shipped for one in list_machines()][:3] == [False, False, True]
    assert find_sound_machine("v100") == find_machine("v100")


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
    machine_path("x").write_text("schema: [")  # damaged files are not skipped
    with pytest.raises(MachineFileError, match=r"x\.yaml:1"):
        find_machine("x")
    assert find_sound_machine("x") is None


def test_comparison_pairs_numbers_and_judges_intervals() -> None:

    def make(size: int, low: int, high: int) -> MachineDescription:
        trait = Trait(value=size, low=low, high=high, source=TraitSource.MEASURED)
        caches = (CacheFacts(name="L1", size_bytes=trait),)
        return replace(MACHINE, caches=caches)

    (near,) = compare_machines(make(100, 90, 110), make(120, 105, 130))
    assert (near["name"], near["ratio"]) == ("caches.L1.size_bytes", 1.2)
    assert near["intervals_overlap"] is True
    (far,) = compare_machines(make(100, 90, 110), make(150, 140, 160))
    assert far["intervals_overlap"] is False
    (lone,) = compare_machines(make(100, 90, 110), MACHINE)
    assert [lone[key] for key in ("second", "ratio", "intervals_overlap")] == [None] * 3


ROOT = Path(__file__).parents[3]
DEVICE = "intel-amd-epyc-c960"


LOOP = """kernel void k(global const int* a, global int* b) {
    int x = get_global_id(0), n = a[x], s = 0; while (n != 1) { n = n / 2; s++; } b[x] = s; }"""


@pytest.mark.parametrize(("name", "limiter"), [("transcendental", "special"), ("triad", "DRAM")])
def test_answers_from_the_source_alone(name: str, limiter: str) -> None:
    """Gives a time, and what bounds it, without a device; where rivals are asked for, their time
    becomes a feature. Doubts how long a loop runs that data end; has no answer where data tell
    addresses that were not recorded; says whose numbers stand in for those of another device."""
    folder = machine_path(DEVICE).parent
    folder.mkdir(parents=True)
    shutil.copy(ROOT / f"benchmarks/results/calibration/{DEVICE}.yaml", folder)
    problem = read_example(name)
    found = model_own_launch(problem, problem.ndrange, DEVICE)
    assert found is not None
    assert 1e-3 < found.seconds < 10
    assert (found.limiter, found.doubt) == (limiter, 0.0)
    both = model_own_launch(problem, problem.ndrange, DEVICE, with_rivals=True)
    assert both is not None
    assert both.seconds == found.seconds
    assert combine(both).as_dict()["analytic.mwp_cwp_s"] == both.quantities["mwp_cwp_s"] > 0
    assert "analytic.mwp_cwp_s" in combine(found).absent
    loop = write_problem(LOOP, *[buffer_of("int32", 4096)] * 2, items=(4096,))
    doubted = model_own_launch(loop, loop.ndrange, DEVICE)
    assert doubted is not None
    assert doubted.doubt > math.log(100)
    unknown = read_example("spmv_csr")
    with pytest.raises(KernelcastError):
        model_own_launch(unknown, unknown.ndrange, DEVICE)
    other = model_own_launch(problem, problem.ndrange, "nvidia-a100-0a1b", stand_in="a100")
    assert other is not None
    assert any("A100-SXM4-40GB stands in" in one for one in other.notes)


@pytest.mark.parametrize(
    ("device_id", "name", "units", "expected"),
    [
        ("nvidia-tesla-v100-sxm2-0a1b", "Tesla V100-SXM2-16GB", 80, "v100"),
        ("nvidia-a100-sxm4-40gb-0a1b", "NVIDIA A100-SXM4-40GB", 108, "a100"),
        ("nvidia-a100-80gb-pcie-0a1b", "NVIDIA A100 80GB PCIe", 108, "a100-80gb"),
        ("nvidia-h100-pcie-0a1b", "NVIDIA H100 PCIe", 114, "h100-pcie"),
        ("nvidia-l40s-0a1b", "NVIDIA L40S", 142, "l40"),
        ("amd-amd-instinct-mi250x-0a1b", "gfx90a:sramecc+:xnack-", 110, "mi210"),
        ("rusticl-amd-radeon-rx-0a1b", "AMD Radeon RX 6900 XT (radeonsi)", 40, "rx-6900-xt"),
        ("nvidia-a100-sxm4-40gb-0a1b", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14, None),
        ("nvidia-tesla-v100s-pcie-0a1b", "Tesla V100S-PCIE-32GB", 80, None),
        ("nvidia-h100-80gb-hbm3-0a1b", "NVIDIA H100 80GB HBM3", 132, "gh200"),
        ("nvidia-geforce-rtx-4090-0a1b", "NVIDIA GeForce RTX 4090", 128, None),
        ("intel-intel-arc-a770-0a1b", "Intel(R) Arc(TM) A770 Graphics", 512, None),
    ],
)
def test_a_gpu_is_recognised_by_its_name(
    device_id: str, name: str, units: int, expected: str | None
) -> None:
    """Finds descriptions of the same chip, and none for parts of a chip or other boards."""
    device = replace(make_description(compute_units=units), id=device_id, name=name)
    found = find_stand_in(replace(device, kind=DeviceKind.GPU))
    assert (found.id if found else None) == expected
    assert find_stand_in(device) is None  # a CPU


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
            HEAD + "curves: {a: {x_name: x, y_name: y, x: [1], y: [1, 2]}}\n",
            "curves.a: curve a: columns of [1, 2] points; give all the same",
        ),
        ("a: [", "m.yaml:1:5: not valid YAML"),
    ],
)
def test_complaints_name_file_line_and_key(text: str, said: str) -> None:
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
