import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kernelcast.cli import app

ROOT = Path(__file__).resolve().parents[3]
STENCIL = ROOT / "examples/models/accesses/stencil2d5pt.yaml"
LAYERS = ROOT / "examples/models/accesses/layer_condition.yaml"
TRIAD = ROOT / "examples/triad/triad.yaml"
TYPED = (
    "--array", "src:float64:640x512", "--array", "dst:float64:640x512", "--global", "640,512",
    "--access", "src[x-1][y] if x > 0", "--store", "dst[x][y]",
)  # fmt: skip


def run(*words: str | Path) -> Result:
    """Run `kernelcast model` in this process."""
    return CliRunner().invoke(app, ["model", *map(str, words)])


def read_json(*words: str | Path) -> list[dict[str, object]]:
    """Run `kernelcast model gpu --json`, which must succeed."""
    result = run("gpu", *words, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def test_shows_volumes_limiters_and_advice() -> None:
    """Shows in full what one machine answers."""
    result = run("gpu", STENCIL, "--machine", "a100")
    assert result.exit_code == 0
    for text in ("stencil2d5pt on a100", "DRAM to L2 (loads)", "B/update", "without it", "most"):
        assert text in result.stdout


def test_json_holds_everything() -> None:
    """Gives times in seconds and volumes in bytes of the whole launch."""
    [found] = read_json(STENCIL, "--machine", "a100", "--local", "128,2")
    assert found["machine"] == "a100"
    assert found["local_size"] == [128, 2]
    assert found["updates"] == 8192**2
    volumes, limiters = found["volumes"], found["limiters"]
    assert isinstance(volumes, dict)
    assert isinstance(limiters, dict)
    assert volumes["DRAM_to_L2"] >= 8 * 8000**2
    assert found["limiter"] in limiters


def test_compares_machines_in_one_table() -> None:
    """Gives each machine a row."""
    result = run("gpu", TRIAD, "--machine", "a100", "--machine", "v100")
    assert result.exit_code == 0
    assert "a100" in result.stdout
    assert "v100" in result.stdout


def test_takes_accesses_as_text() -> None:
    """Models what is typed like a file."""
    [found] = read_json(*TYPED, "--machine", "a100", "--local", "32,8", "--operation", "fp64=2")
    assert found["updates"] == 640 * 512


def test_folding_keeps_the_updates() -> None:
    """Folds on request, and says so."""
    [found] = read_json(STENCIL, "--machine", "a100", "--fold", "2y")
    assert found["fold"] == "2y"
    assert found["updates"] == 8192**2


def test_ranks_local_sizes_and_foldings() -> None:
    """Sorts by time, and covers foldings along all dimensions but the first."""
    [sweep] = read_json(STENCIL, "--machine", "a100", "--sweep-local", "--sweep-fold")
    configurations = sweep["configurations"]
    assert isinstance(configurations, list)
    times = [one["seconds"] for one in configurations]
    assert times == sorted(times)
    assert {one["fold"] for one in configurations} == {"", "2y"}
    assert len({tuple(one["local_size"]) for one in configurations}) > 30
    table = run("gpu", TRIAD, "--machine", "a100", "--sweep-local", "--top", "2")
    assert "configurations, fastest first" in table.stdout


def test_finds_the_layer_condition() -> None:
    """Says from which size on DRAM loads climb."""
    words = ("gpu", LAYERS, "--machine", "a100", "--sweep-size", "NX=300:600:100")
    result = run(*words)
    assert result.exit_code == 0
    assert "DRAM loads climb from" in result.stdout
    found = json.loads(run(*words, "--json").stdout)
    assert [one["value"] for one in found["sizes"]] == [300, 400, 500, 600]
    [transition] = found["transitions"].values()
    assert 300 < transition["begins"] < transition["middle"] < 600


@pytest.mark.parametrize(
    "extra",
    [(), ("--sweep-local", "--top", "3"), ("--sweep-size", "N=1024:4096:1024")],
    ids=["breakdown", "ranking", "sizes"],
)
def test_draws_pictures(tmp_path: Path, extra: tuple[str, ...]) -> None:
    """Writes a picture of each kind of answer."""
    pytest.importorskip("matplotlib")
    target = tmp_path / "picture.png"
    result = run("gpu", STENCIL, "--machine", "a100", *extra, "--plot", target)
    assert result.exit_code == 0, result.output
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((STENCIL, "--machine", "nonesuch"), "no machine description 'nonesuch'"),
        ((STENCIL, "--machine", "skylake-sp"), "needs a GPU"),
        ((STENCIL, "--machine", "a100", "--local", "64,32"), "at most 1024"),
        ((STENCIL, "--machine", "a100", "--local", "64"), "dimensions"),
        ((STENCIL, "--machine", "a100", "--local", "0,4"), "local size is 0"),
        ((STENCIL, "--machine", "a100", "--local", "a,4"), "expected one to three whole numbers"),
        ((STENCIL, "--machine", "a100", "--fold", "2q"), "such as 2z"),
        ((STENCIL, "--machine", "a100", "--fold", "2z"), "2 dimensions"),
        ((STENCIL, "--machine", "a100", "-p", "M=3"), "no parameter is called M"),
        ((STENCIL, "--machine", "a100", "--sweep-size", "N=4"), "NAME=FIRST:LAST:STEP"),
        ((STENCIL, "--machine", "a100", "--sweep-size", "N=9:4:1"), "0 < FIRST <= LAST"),
        ((STENCIL, "--machine", "a100", "--sweep-size", "Q=4:9:1"), "no parameter is called Q"),
        ((STENCIL, "--machine", "a100", "--plot", "no/where.png"), "no folder"),
        ((STENCIL, "--machine", "a100", "--plot", "chart.xyz"), "end the name in one"),
        ((STENCIL, "--machine", "a100", "--device", "cpu"), "no device can run"),
        ((STENCIL, "--machine", "a100", "--sweep-local", "--measured", "m.csv"), "--measured"),
        ((STENCIL, "--machine", "a100", "--measured", "none.csv"), "cannot be read"),
        (("nowhere.yaml", "--machine", "a100"), "cannot be read"),
        (("--machine", "a100"), "give a file"),
        ((STENCIL, "--machine", "a100", *TYPED), "give a file"),
        ((*TYPED, "--machine", "a100", "--access", "q[x]"), "'q' is not declared"),
        ((*TYPED, "--machine", "a100", "--access", "src[x*y][0]"), "not affine"),
        ((*TYPED, "--machine", "a100", "--array", "src:int8"), "declared twice"),
        ((*TYPED, "--machine", "a100", "--operation", "fp63=1"), "expected a count"),
        ((*TYPED[:4], "--access", "src[x][y]", "--machine", "a100"), "need --global"),
        ((*TYPED, "--machine", "a100", "--array", "z:int8:0"), "at least 1"),
        ((*TYPED, "--machine", "a100", "--global", "0,4"), "global size is 0"),
        ((*TYPED, "--machine", "a100", "--hit-rates", "none"), "no hit rates are called"),
    ],
)
def test_bad_input_ends_with_status_2(words: tuple[str | Path, ...], complaint: str) -> None:
    """Says what is wrong on standard error, without a traceback."""
    result = run("gpu", *words)
    assert result.exit_code == 2, result.output
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_a_machine_without_its_largest_work_group_names_the_number(tmp_path: Path) -> None:
    """Names what is missing, and the command that finds it."""
    text = (ROOT / "src/kernelcast/data/machines/a100.yaml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("max_work_group_size")]
    path = tmp_path / "lame.yaml"
    path.write_text("\n".join(lines))
    result = run("gpu", STENCIL, "--machine", path, "--sweep-local")
    assert result.exit_code == 2
    assert "max_work_group_size is missing; `kernelcast calibrate`" in result.stderr


def test_points_at_the_typed_mistake() -> None:
    """Marks the character in what was typed."""
    result = run("gpu", *TYPED, "--machine", "a100", "--access", "src[x][w]")
    shown, mark = result.stderr.splitlines()[-2:]
    assert shown[mark.index("^")] == "w"


def test_fits_hit_rates(tmp_path: Path) -> None:
    """Writes fitted hit rates that `model gpu` takes."""
    rows = ["function,oversubscription,hit_rate"]
    rows += [f"l1_load,{over / 4},{1 - 0.5 * min(1, over / 12)}" for over in range(20)]
    table, target = tmp_path / "points.csv", tmp_path / "rates.yaml"
    table.write_text("\n".join(rows))
    result = run("fit", table, "--out", target, "--plot", tmp_path / "fit.svg")
    assert result.exit_code == 0, result.output
    assert "+-" in result.stdout
    assert (tmp_path / "fit.svg").stat().st_size > 1000
    [found] = read_json(STENCIL, "--machine", "a100", "--hit-rates", target)
    assert found["machine"] == "a100"


def test_the_papers_rates_bring_the_papers_limiters() -> None:
    """Takes the largest of FP, L1, L2 and DRAM alone with `--hit-rates paper-2022`."""
    [found] = read_json(STENCIL, "--machine", "a100", "--hit-rates", "paper-2022")
    assert set(found["limiters"]) <= {"fp32", "fp64", "L1", "L2", "DRAM"}
    assert found["seconds"] == max(found["limiters"].values())


def test_compares_with_measured_launches(tmp_path: Path) -> None:
    """Shows errors and ranks, draws them, and lists every launch in JSON."""
    table = tmp_path / "measured.csv"
    table.write_text(
        "local_size,dram_load_bytes_per_update,updates_per_s\n32x4,8.5,3e10\n64x4,8.3,4e10\n"
    )
    words = ("gpu", STENCIL, "--machine", "v100", "--measured", table)
    result = run(*words, "--plot", tmp_path / "scatter.svg")
    assert result.exit_code == 0, result.output
    assert "mean error" in result.stdout
    assert "of the fastest measured" in result.stdout
    assert (tmp_path / "scatter.svg").stat().st_size > 1000
    found = json.loads(run(*words, "--json").stdout)
    assert [one["quantity"] for one in found] == ["dram_load_bytes_per_update", "updates_per_s"]
    assert len(found[0]["launches"]) == 2


def test_measured_volumes_need_a_kernel_and_a_machine(tmp_path: Path) -> None:
    """Asks what was run, and where."""
    table = tmp_path / "volumes.csv"
    table.write_text("local_size,dram_load_bytes_per_update\n32x4,16\n")
    result = run("fit", table)
    assert result.exit_code == 2
    assert "need --problem and --machine" in result.stderr


def test_help_names_the_commands_without_loading_drivers() -> None:
    """Loads no OpenCL driver's binding and no chart library for the group itself."""
    code = (
        "import sys; from kernelcast.cli.groups import model; "
        "assert sorted(model.list_commands(None))== ['cpu', 'fit', 'gpu', 'scratchpad']; "
        "assert 'kernelcast.cli.model.gpu.command' not in sys.modules; "
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    result = run("--help")
    assert "gpu" in result.stdout
    assert "fit" in result.stdout
