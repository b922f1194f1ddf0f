from pathlib import Path

import pytest

from kernelcast.collection.collection import CollectionOutcome, DeviceOutcome
from kernelcast.collection.own_problems import find_problems, guess_size
from kernelcast.collection.settings import CollectionSettings
from kernelcast.records.errors import InputError
from kernelcast.reports.presenter import write_lines
from support.commands import run_command

PROBLEM = """\
code: kernel void {name}(global float *x) {{ x[get_global_id(0)] += 1; }}
kernel: {name}
global_size: ["{{N}} * {{REPEATS}}"]
local_size: [32]
parameters: {{FACTOR: 3, N: 4096, REPEATS: 2}}
args: [{{buffer: float32, count: "{{N}} * {{REPEATS}}", init: zeros}}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with two kernels, one of them in a folder of its own, and another file."""
    (tmp_path / "solver").mkdir()
    (tmp_path / "scale.yaml").write_text(PROBLEM.format(name="scale"), encoding="utf-8")
    (tmp_path / "solver/step.yaml").write_text(PROBLEM.format(name="step"), encoding="utf-8")
    (tmp_path / "notes.yaml").write_text("a: 1", encoding="utf-8")
    return tmp_path


def test_problem_files_are_kernels_and_folders_are_families(folder: Path) -> None:
    """Sizes are searched along the first parameter that adds work-groups; others say why not."""
    kernels, left_out = find_problems(folder)
    assert [one.name for one in kernels] == ["scale", "solver/step"]
    assert [one.application for one in kernels] == ["", "solver"]
    for one in kernels:
        assert (one.size.parameter, one.size.multiple_of, one.sizes) == ("N", 32, ())
        assert one.local_sizes == ((32,),)
        assert one.size.least < 4096 < one.size.most
    (why,) = left_out.values()
    assert "unknown key" in why


def test_sizes_may_be_given(folder: Path) -> None:
    """A parameter alone says what is searched along, with values what is collected; one
    that changes nothing cannot make a launch larger."""
    assert find_problems(folder, {"REPEATS": ()})[0][0].size.parameter == "REPEATS"
    kernels, _ = find_problems(folder, {"N": (8192, 1024)})
    assert {one.sizes for one in kernels} == {(1024, 8192)}
    few, many = (CollectionSettings(runs=one).foretell_s(kernels) for one in (5, 9))
    assert 0 < few < many
    for names, told in (("N", "REPEATS"), "one of them by"), ("Q", r"has it, but .*N, REPEATS"):
        with pytest.raises(InputError, match=told):
            find_problems(folder, dict.fromkeys(names, ()))
    with pytest.raises(InputError, match="FACTOR does not"):
        guess_size(folder / "scale.yaml", "FACTOR")
    with pytest.raises(InputError, match="no problem files"):
        find_problems(folder / "solver", {"FACTOR": ()})
    with pytest.raises(InputError, match="is no folder"):
        find_problems(folder / "scale.yaml")


def test_what_is_left_out_or_flagged_has_a_reason() -> None:
    """A number in a table would leave its reader guessing."""
    one = DeviceOutcome(
        device_id="fake", skipped={"sgemm/sgemm_nt": "128 work-groups"}, measured=5, disturbed=5
    )
    left_out, flagged = write_lines("collect.txt", outcome=CollectionOutcome(devices=[one]))
    assert left_out == "fake: sgemm/sgemm_nt left out: 128 work-groups"
    assert isinstance(flagged, str)
    assert flagged.startswith("fake: 5 of 5 rows are flagged as contaminated")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--size", "N"], "--size is for --problems"),
        (["--problems", ".", "--size", "N=x"], "expected NAME or NAME=N"),
        (["--problems", "nothing"], "is no folder"),
        (["--time-budget", "soon"], "such as 90s"),
    ],
)
def test_wrong_words_are_told(words: list[str], told: str) -> None:
    """Before any device is looked for."""
    result = run_command("collect", *words)
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr
