import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest
from rich.console import Console

from kernelcast.cli.features import list_accesses, show_source
from kernelcast.launches.features import (
    DeviceAnswer,
    DeviceFindings,
    KernelFeatures,
    compose_vector,
    read_source_features,
)
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.device import CompilerFacts
from kernelcast.records.errors import KernelRunError
from kernelcast.reports.presenter import make_renderable
from support.builders import make_description
from support.commands import run_command

run = partial(run_command, "features")
ROOT = Path(__file__).resolve().parents[3]
MATMUL = ROOT / "examples/matmul_tiled/matmul_tiled.yaml"
GOLDEN = Path(__file__).with_name("annotated_triad.txt")


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """Replace the devices: each answers, or fails, or is interrupted."""
    outcomes: list[BaseException | None] = [None]

    def read_on_devices(features: KernelFeatures, *_: object, **__: object
                        ) -> Iterator[DeviceAnswer]:  # fmt: skip
        for number, outcome in enumerate(outcomes):
            device = replace(make_description(), id=f"device-{number}")
            if isinstance(outcome, KernelRunError):
                yield device, outcome
            elif outcome is not None:
                raise outcome
            else:
                found = DeviceFindings(ndrange=features.ndrange, compute_units=2,
                                       compiler=CompilerFacts(), notes=["a note"])  # fmt: skip
                found.vector = compose_vector(features, found)
                yield device, found

    monkeypatch.setattr("kernelcast.cli.features.choose_devices", lambda _: [make_description()])
    monkeypatch.setattr("kernelcast.cli.features.read_on_devices", read_on_devices)
    return outcomes


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
    for part in show_source(read_source_features(read_problem(MATMUL))):
        console.print(make_renderable(part, width=width))
    output.seek(0)
    lines = output.read().splitlines()
    assert max(map(len, lines)) <= width
    assert any("8 fp32" in line and "1,472" in line for line in lines)


def test_the_access_table_folds_on_narrow_terminals() -> None:
    """Puts address, condition and pattern above each other where ten columns do not fit."""
    features = read_source_features(read_problem(ROOT / "examples/histogram/histogram.yaml"))
    shown = {}
    for width in (80, 300):
        output = StringIO()
        shown_table = make_renderable(list_accesses(features), width=width)
        Console(file=output, width=width, markup=False).print(shown_table)
        shown[width] = output.getvalue()
        assert max(map(len, shown[width].splitlines())) <= width
    assert "counts[lid.x + lsz.x*it27]" in shown[80]
    assert max(map(len, shown[300].splitlines())) > 80


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
