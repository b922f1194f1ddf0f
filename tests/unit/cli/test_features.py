import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from kernelcast.cli import app
from kernelcast.cli.features.annotated_source import AnnotatedSource
from kernelcast.cli.features.tables import make_access_table
from kernelcast.launches.feature_task import DeviceFindings
from kernelcast.launches.features import (
    DeviceFeatures,
    KernelFeatures,
    compose_vector,
    read_source_features,
)
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.compiler_facts import CompilerFacts
from kernelcast.records.errors import KernelRunError, NoDeviceError
from support.builders import make_description

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(ROOT.glob("examples/*/*.yaml"))
MATMUL = ROOT / "examples/matmul_tiled/matmul_tiled.yaml"
GOLDEN = Path(__file__).with_name("annotated_triad.txt")
BROKEN = """\
code: |
  kernel void k(global float *a, int n)
  {
      a[get_global_id(0)] = unheard_of(n);
  }
kernel: k
global_size: [64]
local_size: [8]
args: [{buffer: float32, count: 64, init: zeros}, {scalar: int32, value: 3}]
"""


def run(*words: str | Path) -> Result:
    """Run `kernelcast features`."""
    return CliRunner().invoke(app, ["features", *map(str, words)])


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """Replace the devices: each answers, or fails, or is interrupted."""
    outcomes: list[BaseException | None] = [None]

    def read_on_devices(features: KernelFeatures, *_: object, **__: object
                        ) -> Iterator[DeviceFeatures]:  # fmt: skip
        for number, outcome in enumerate(outcomes):
            answer = DeviceFeatures(device_id=f"device-{number}", device="A device")
            if isinstance(outcome, KernelRunError):
                yield replace(answer, error=outcome)
            elif outcome is not None:
                raise outcome
            else:
                found = DeviceFindings(ndrange=features.ndrange, compute_units=2,
                                       compiler=CompilerFacts(), notes=["a note"])  # fmt: skip
                yield replace(answer, findings=found, vector=compose_vector(features, found))

    monkeypatch.setattr(
        "kernelcast.cli.features.command.choose_devices", lambda _: [make_description()]
    )
    monkeypatch.setattr("kernelcast.cli.features.command.read_on_devices", read_on_devices)
    return outcomes


def test_every_example_is_shown_without_a_device() -> None:
    """Prints every part of the report for every example."""
    result = run("--no-device", *EXAMPLES)
    assert result.exit_code == 0, result.stderr
    for title in ("Parameters", "Operations per work-item, from the source", "Memory accesses",
                  "Divergence", "Understood", "Features"):  # fmt: skip
        assert result.stdout.count(f"\n{title}\n") == len(EXAMPLES), title
    assert "a[lid.x + n*gid.y + 16*it21]" in result.stdout


def test_json_holds_one_object_per_problem() -> None:
    """Gives facts, counters, lines and a vector that can be read again."""
    result = run("--no-device", "--json", MATMUL)
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)
    assert (found["problem"], found["kernel"]) == ("matmul_tiled", "matmul")
    assert found["local_size"] == [16, 16]
    assert found["coverage"] == 1
    assert [one["name"] for one in found["parameters"]] == ["a", "b", "c", "n", "alpha"]
    assert found["loops"][1]["trip_count"] == "16"
    assert found["accesses"][0]["offset_bytes"].startswith("4*local_id(0)")
    assert found["counters"]["is_measured"] is False
    assert {"line", "executions", "operations", "memory"} == found["lines"][0].keys()
    assert found["devices"] == []
    assert found["vector"]["features"]["static.loops_count"] == 2


def test_groups_can_be_chosen() -> None:
    """Keeps the vector to the groups asked for."""
    result = run("--no-device", "--json", "--group", "static", MATMUL)
    (found,) = json.loads(result.stdout)
    assert {name.partition(".")[0] for name in found["vector"]["features"]} == {"static"}


def test_the_source_is_annotated_line_by_line() -> None:
    """Looks as in the golden file; write it anew where a change of it is wanted."""
    result = run("--no-device", "--source", ROOT / "examples/triad/triad.yaml")
    assert result.exit_code == 0
    shown = "\n".join(line.rstrip() for line in result.stdout.splitlines())
    assert shown.strip("\n") == GOLDEN.read_text(encoding="utf-8").strip("\n")


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_source_fits_the_terminal(width: int, encoding: str) -> None:
    """Keeps every line inside the terminal, and to its characters."""
    output = TextIOWrapper(BytesIO(), encoding=encoding, write_through=True)
    console = Console(file=output, width=width, markup=False, highlight=False, emoji=False)
    console.print(AnnotatedSource(read_source_features(read_problem(MATMUL))))
    output.seek(0)
    lines = output.read().splitlines()
    assert max(map(len, lines)) <= width
    assert any("8 fp32" in line and "1,472" in line for line in lines)


def test_the_access_table_folds_on_narrow_terminals() -> None:
    """Joins address, condition and pattern in one column where ten do not fit."""
    features = read_source_features(read_problem(ROOT / "examples/histogram/histogram.yaml"))
    shown = {}
    for width in (80, 300):
        output = StringIO()
        Console(file=output, width=width, markup=False).print(make_access_table(features))
        shown[width] = output.getvalue()
        assert max(map(len, shown[width].splitlines())) <= width
    assert "counts[lid.x + lsz.x*it27] if data" in shown[80]
    assert "where" in shown[80].splitlines()[0]
    assert "pattern" in shown[300]


def test_a_long_source_is_cut_to_the_kernel(tmp_path: Path) -> None:
    """Leaves out what the kernel does not reach."""
    padding = "\n".join(f"// comment {number}" for number in range(200))
    source = f"{padding}\nkernel void k(global int *a) {{ a[0] = 1; }}\n{padding}\n"
    (tmp_path / "long.cl").write_text(source, encoding="utf-8")
    path = tmp_path / "long.yaml"
    path.write_text(
        "source: long.cl\nkernel: k\nglobal_size: [64]\nlocal_size: [8]\n"
        "args: [{buffer: int32, count: 64, init: zeros}]\n", encoding="utf-8"
    )  # fmt: skip
    shown = run("--no-device", "--source", path).stdout
    assert "comment 199" in shown
    assert "comment 100" not in shown
    assert "..." in shown


def test_a_kernel_understood_in_part_is_shown_with_its_gaps(tmp_path: Path) -> None:
    """Prints what is known, and why the rest is not."""
    path = tmp_path / "broken.yaml"
    path.write_text(BROKEN, encoding="utf-8")
    result = run("--no-device", path)
    assert result.exit_code == 0
    assert "unheard_of" in result.stdout
    assert "a[gid.x]" in result.stdout
    assert run("--no-device", "--source", path).exit_code == 0


def test_bad_input_ends_with_status_two(tmp_path: Path) -> None:
    """Says what is wrong in one line."""
    path = tmp_path / "bad.yaml"
    path.write_text(BROKEN.replace("kernel: k", "kernel: other"), encoding="utf-8")
    result = run("--no-device", path)
    assert result.exit_code == 2
    assert "'other' is not in" in result.stderr
    assert run("--no-device", tmp_path / "none.yaml").exit_code == 2
    assert run("--no-device", "--group", "other", MATMUL).exit_code == 2
    assert run("--no-device", "--device", "x", MATMUL).exit_code == 2
    assert run("--no-device", "--timeout", "0", MATMUL).exit_code == 2


def test_one_bad_problem_does_not_hide_the_others(tmp_path: Path) -> None:
    """Shows what could be read."""
    path = tmp_path / "bad.yaml"
    path.write_text(BROKEN.replace("kernel: k", "kernel: other"), encoding="utf-8")
    result = run("--no-device", path, MATMUL)
    assert result.exit_code == 2
    assert "kernel matmul" in result.stdout


def test_parameters_can_be_replaced(tmp_path: Path) -> None:
    """Takes the value of the command line."""
    path = tmp_path / "small.yaml"
    text = BROKEN.replace("global_size: [64]", 'global_size: ["{N}"]\nparameters: {N: 64}')
    path.write_text(text.replace("unheard_of(n)", "n"), encoding="utf-8")
    (found,) = json.loads(run("--no-device", "--json", "-p", "N=2**7", path).stdout)
    assert found["global_size"] == [128]


def test_devices_get_columns_and_notes(devices: list[BaseException | None]) -> None:
    """Shows one column per device that answered, and every failure on standard error."""
    devices += [None, KernelRunError("it died")]
    result = run(MATMUL)
    assert result.exit_code == 1
    assert "device-0  device-1" in " ".join(result.stdout.split()).replace(
        " device-1", "  device-1"
    )
    assert "device-0: a note" in result.stdout
    assert "matmul_tiled: it died" in result.stderr
    (found,) = json.loads(run("--json", MATMUL).stdout)
    assert [one["device_id"] for one in found["devices"]] == ["device-0", "device-1", "device-2"]
    assert found["devices"][2]["error_message"] == "it died"
    assert any(found["devices"][0]["vector"]["features"].values())


def test_an_interrupt_keeps_what_is_done(devices: list[BaseException | None]) -> None:
    """Prints devices that had answered by then."""
    devices += [KeyboardInterrupt()]
    result = run(MATMUL)
    assert result.exit_code == 130
    assert "device-0" in result.stdout
    assert "interrupted" in result.stderr


def test_without_a_device_the_source_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails in the end, but prints what needs no device."""

    def choose_devices(_: object) -> None:
        msg = "no OpenCL device"
        raise NoDeviceError(msg)

    monkeypatch.setattr("kernelcast.cli.features.command.choose_devices", choose_devices)
    result = run(MATMUL)
    assert result.exit_code == 1
    assert "kernel matmul" in result.stdout
    assert "no OpenCL device" in result.stderr


def test_every_key_of_json_is_documented(devices: list[BaseException | None]) -> None:
    """Has a row in the command line's reference for each key, and for no other."""
    devices += [KernelRunError("it died")]
    (found,) = json.loads(run("--json", MATMUL).stdout)
    text = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    section = text.split("## Objects of `features --json`")[1].split("\n## ")[0]
    keys = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    assert {key for row in keys for key in re.findall(r"`(\w+)`", row)} == found.keys()
    (row,) = (line for line in section.splitlines() if line.startswith("| `devices`"))
    of_device = {key for one in found["devices"] for key in one}
    assert of_device <= set(re.findall(r"`(\w+)`", row))
