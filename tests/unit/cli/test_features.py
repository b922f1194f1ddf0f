import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO, TextIOWrapper
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
HISTOGRAM = ROOT / "examples/histogram/histogram.yaml"
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


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_source_and_accesses_fit_the_terminal(width: int, encoding: str) -> None:
    """Keeps every line inside the terminal, and to its characters, and loses nothing."""
    output = TextIOWrapper(BytesIO(), encoding=encoding, write_through=True)
    console = Console(file=output, width=width, markup=False, highlight=False, emoji=False)
    matmul, histogram = (read_source_features(read_problem(one)) for one in (MATMUL, HISTOGRAM))
    for part in (*show_source(matmul), list_accesses(histogram)):
        console.print(make_renderable(part, width=width))
    output.seek(0)
    lines = output.read().splitlines()
    assert max(map(len, lines)) <= width
    assert any("8 fp32" in line and "1,472" in line for line in lines)
    assert any("counts[lid.x + lsz.x*it27]" in line for line in lines)


def test_a_long_source_is_cut_to_the_kernel(tmp_path: Path) -> None:
    """Leaves out what the kernel does not reach."""
    padding = "\n".join(f"// comment {number}" for number in range(200))
    code = f"{padding}\nkernel void k(global int *a) {{ a[0] = 1; }}\n{padding}\n"
    problem = {"code": code, "kernel": "k", "global_size": [64], "local_size": [8],
               "args": [{"buffer": "int32", "count": 64}]}  # fmt: skip
    path = tmp_path / "long.yaml"
    path.write_text(json.dumps(problem), encoding="utf-8")
    shown = run("--no-device", "--source", path).stdout
    assert "comment 199" in shown
    assert "comment 100" not in shown
    assert "..." in shown


def test_devices_get_columns_and_notes(devices: list[BaseException | None]) -> None:
    """Shows one column per device that answered, and every failure on standard error."""
    devices += [None, KernelRunError("it died")]
    result = run(MATMUL)
    assert result.exit_code == 1
    assert "device-0 device-1" in " ".join(result.stdout.split())
    assert "device-0: a note" in result.stdout
    assert "matmul_tiled: it died" in result.stderr
    (found,) = json.loads(run("--json", MATMUL).stdout)
    assert [one["device_id"] for one in found["devices"]] == ["device-0", "device-1", "device-2"]
    assert found["devices"][2]["error_message"] == "it died"
    devices[1:] = [KeyboardInterrupt()]
    result = run(MATMUL)
    assert (result.exit_code, "device-0" in result.stdout) == (130, True)
    assert "interrupted" in result.stderr
