import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kernelcast.cli import app

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "examples/scratchpad/kernels"
NBODY, DYNAMICS, KMEANS = (KERNELS / f"{one}.yaml" for one in ("nbody", "wrf-dynamics", "kmeans"))
TRANSPOSE = ROOT / "examples/transpose/transpose.yaml"


def run(*words: str | Path) -> Result:
    """Run `kernelcast model scratchpad` in this process."""
    return CliRunner().invoke(app, ["model", "scratchpad", *map(str, words)])


def read_json(*words: str | Path) -> dict[str, object] | list[dict[str, object]]:
    """Run it with `--json`; it must succeed."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, object] | list[dict[str, object]] = json.loads(result.stdout)
    return found


def test_shows_every_term_by_the_papers_names() -> None:
    """Shows times, shares and the terms of requests."""
    result = run(NBODY)
    assert result.exit_code == 0, result.output
    for text in ("T_total", "T_comp", "T_DMA", "T_overlap", "MRP", "NG", "scenario 1", "1.10 ms"):
        assert text in result.stdout


def test_json_is_in_seconds() -> None:
    """Gives one object per file, with equations 1 and 2 between its times."""
    [nbody, dynamics] = read_json(NBODY, DYNAMICS)  # type: ignore[misc]
    assert nbody["dma"]["groups"] == 8
    assert nbody["t_total_s"] == pytest.approx(1.0986e-3, rel=3e-3)
    parts = dynamics["t_mem_s"] + dynamics["t_comp_s"] - dynamics["t_overlap_s"]
    assert dynamics["t_total_s"] == pytest.approx(parts)


def test_several_kernels_make_a_breakdown() -> None:
    """Lists a row per kernel."""
    result = run(NBODY, DYNAMICS, KMEANS)
    assert result.exit_code == 0, result.output
    assert all(one in result.stdout for one in ("nbody", "wrf-dynamics", "kmeans"))


def test_finds_the_best_number_of_cpes() -> None:
    """Finds 48 within a core group."""
    result = run(DYNAMICS, "--what-if", "cpes", "--cpes", "8:64:8")
    assert "fastest with 48 active CPEs" in result.stdout
    found = read_json(DYNAMICS, "--what-if", "cpes", "--cpes", "8:64:8")
    assert isinstance(found, dict)
    assert found["best_active_cpes"] == 48
    assert "of one core group with 48" in run(DYNAMICS, "--what-if", "cpes").stdout


def test_says_where_cpes_change_nothing() -> None:
    """Warns that a file's numbers do not depend on the number of CPEs."""
    assert "nothing in the file depends" in run(NBODY, "--what-if", "cpes").stdout


def test_says_what_double_buffering_saves() -> None:
    """Shows the saving, the bound of equation 14, and that the buffers do not fit."""
    result = run(NBODY, "--what-if", "double-buffer")
    assert "saves 43.5 us" in result.stdout
    assert "87.0 us" in result.stdout
    assert "requests must be made smaller first" in result.stdout


def test_says_what_smaller_requests_save() -> None:
    """Shows a row per division, with equation 13 beside the whole model."""
    found = read_json(KMEANS, "--what-if", "dma")
    assert isinstance(found, dict)
    steps = found["granularity"]
    assert [one["parts"] for one in steps] == [1, 2, 4, 8]  # type: ignore[attr-defined]
    assert "by equation 13" in run(KMEANS, "--what-if", "dma").stdout


def test_derives_a_kernel_from_opencl() -> None:
    """Models a problem file, and tells what it took for granted."""
    result = run(TRANSPOSE, "--ilp", "4")
    assert result.exit_code == 0, result.output
    assert "taken for DMA copies" in result.stdout
    assert "average ILP" not in result.stdout


@pytest.mark.parametrize(
    "words",
    [(), ("--what-if", "dma"), ("--what-if", "double-buffer"), ("--what-if", "cpes")],
)
def test_draws_what_it_found(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Writes a picture for each question."""
    path = tmp_path / "picture.png"
    result = run(KMEANS, *words, "--plot", path)
    assert result.exit_code == 0, result.output
    assert path.stat().st_size > 10_000


def test_draws_several_kernels(tmp_path: Path) -> None:
    """Writes the breakdown of all of them."""
    path = tmp_path / "picture.svg"
    assert run(NBODY, KMEANS, "--plot", path).exit_code == 0
    assert "<svg" in path.read_text()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((NBODY, KMEANS, "--what-if", "dma"), "one kernel at a time"),
        ((NBODY, "--cpes", "8:64"), "--cpes goes with --what-if cpes"),
        ((NBODY, "--what-if", "cpes", "--cpes", "64:8"), "expected FIRST:LAST:STEP"),
        ((NBODY, "--what-if", "cpes", "--cpes", "8:64:0"), "expected FIRST:LAST:STEP"),
        ((NBODY, "--ilp", "2"), "has the key average_ilp"),
        ((NBODY, "--machine", "cell"), "there is no scratchpad machine"),
        ((KERNELS / "none.yaml",), "cannot be read"),
        ((NBODY, "--active-cpes", "300"), "SW26010 has 256"),
        ((NBODY, "-p", "n=1"), "no parameter is called n"),
    ],
)
def test_refuses_what_makes_no_sense(words: tuple[str | Path, ...], complaint: str) -> None:
    """Exits with 2, says what was expected, shows no traceback."""
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr
