import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kernelcast.cli import app
from kernelcast.sampling.loop_benchmark.measuring import find_compiler

ROOT = Path(__file__).resolve().parents[3]
LOOPS = ROOT / "examples/loops"
LONG_RANGE = LOOPS / "3d-long-range.c"
CALIBRATED = ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"
PAPER = ("-D", "M", "130", "-D", "N", "1015", "--machine", "ivy-bridge-ep", "--in-core", "52,54")


def run(*words: str | Path) -> Result:
    """Run `kernelcast model cpu` in this process."""
    return CliRunner().invoke(app, ["model", "cpu", *map(str, words)])


def read_json(*words: str | Path) -> dict[str, object]:
    """Run it with `--json`; it must succeed."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def refuse(*words: str | Path) -> str:
    """Run it; it must be refused. Gives the complaint."""
    result = run(*words)
    assert result.exit_code == 2, result.output
    return result.stderr


def test_shows_the_papers_numbers() -> None:
    """Shows notation, saturation, the size solved for, and where to block."""
    result = run(LONG_RANGE, *PAPER)
    assert result.exit_code == 0, result.output
    for text in (
        "{52.0 || 54.0 | 40.0 | 24.0 | 47.8}", "saturated from 4 cores on", "Roofline",
        "11*N**2 <= 3276800", "545", "advice: block j at",
    ):  # fmt: skip
        assert text in result.stdout


def test_json_holds_everything() -> None:
    """Gives cycles per cache line, volumes, transitions, scaling and advice."""
    found = read_json(LONG_RANGE, *PAPER)
    [size] = found["sizes"]  # type: ignore[misc]
    assert size["constants"] == {"M": 130, "N": 1015}
    assert size["ecm"]["cycles"] == pytest.approx(165.8, abs=0.1)
    assert size["ecm"]["saturation_cores"] == 4
    assert [one["name"] for one in size["levels"]] == ["L1", "L2", "L3", "MEM"]
    assert size["in_core"]["provider"] == "given"
    assert {one["largest"] for one in found["transitions"]} >= {545}  # type: ignore[attr-defined]
    assert len(found["scaling"]) == 10  # type: ignore[arg-type]
    assert found["advice"]


def test_sweeps_a_size() -> None:
    """Gives a row per size; traffic from memory changes where the transition says."""
    found = read_json(
        LONG_RANGE, "-D", "M", "130", "-D", "N", "500:600:50", "--machine", "ivy-bridge-ep"
    )
    sizes = found["sizes"]
    assert isinstance(sizes, list)
    assert [one["constants"]["N"] for one in sizes] == [500, 550, 600]
    loads = [one["levels"][2]["misses"] for one in sizes]
    assert loads[0] < loads[1] == loads[2]
    table = run(LONG_RANGE, "-D", "M", "130", "-D", "N", "500:600:50", "--machine", "ivy-bridge-ep")
    assert table.exit_code == 0
    assert table.stdout.count("{") == 3


@pytest.mark.parametrize(("unit", "factor"), [("cy/It", 1 / 8), ("CY/CL", 1.0)])
def test_tells_other_units(unit: str, factor: float) -> None:
    """Converts the prediction; cycles stay beside it."""
    [size] = read_json(LONG_RANGE, *PAPER, "--unit", unit)["sizes"]  # type: ignore[misc]
    assert size["value"] == pytest.approx(factor * size["ecm"]["cycles"])


def test_takes_the_core_from_assembly(tmp_path: Path) -> None:
    """Asks OSACA where the compiled loop is given, and needs all that belongs to it."""
    pytest.importorskip("osaca")
    body = tmp_path / "body.s"
    body.write_text(
        ".L4:\n vmovapd (%rax), %ymm0\n vaddpd %ymm1, %ymm0, %ymm0\n vmovapd %ymm0, (%rdx)\n"
        " addq $32, %rax\n addq $32, %rdx\n cmpq %rax, %rcx\n jne .L4\n"
    )
    words = (LONG_RANGE, *PAPER[:-2], "--assembly", body)
    whole = read_json(*words, "--architecture", "IVB", "--per-pass", "4")
    [size] = whole["sizes"]  # type: ignore[misc]
    assert size["in_core"]["provider"] == "osaca"
    assert size["in_core"]["overlapping"] >= 2
    assert "belong together" in refuse(*words)


def test_rates_grow_with_cores_until_saturation() -> None:
    """Adds cores up to the memory bandwidth."""
    rates = []
    for cores in ("1", "2", "10"):
        words = (*PAPER, "--unit", "FLOP/s", "--cores", cores)
        [size] = read_json(LONG_RANGE, *words)["sizes"]  # type: ignore[misc]
        rates.append(size["value"])
    assert rates[1] == pytest.approx(2 * rates[0])
    assert rates[1] < rates[2] < 10 * rates[0]


def test_simulates_instead() -> None:
    """Agrees with layer conditions where rows do not compete."""
    words = (LOOPS / "2d-5pt.c", "-D", "M", "60", "-D", "N", "1000", "--machine", "ivy-bridge-ep")
    volumes = [
        read_json(*words, "--cache-predictor", one)["sizes"][0]["levels"]  # type: ignore[index]
        for one in ("lc", "sim")
    ]
    assert volumes[0][0]["misses"] == pytest.approx(volumes[1][0]["misses"], rel=0.02)


def test_estimates_opencl_problems() -> None:
    """Takes a problem file and a calibrated machine: seconds, limiters and volumes."""
    problem = ROOT / "examples/triad/triad.yaml"
    result = run(problem, "--machine", CALIBRATED)
    assert result.exit_code == 0, result.output
    assert "limited by DRAM" in result.stdout
    shown = run(problem, "--machine", CALIBRATED, "-D", "SWEEPS", "2:6:2", "--json")
    found = json.loads(shown.stdout)
    assert [one["value"] for one in found] == [2, 4, 6]
    times = [one["seconds"] for one in found]
    assert times == sorted(times)


def test_draws_sweeps(tmp_path: Path) -> None:
    """Writes pictures of a loop and of a launch."""
    pytest.importorskip("matplotlib")
    loop, launch = tmp_path / "loop.png", tmp_path / "launch.png"
    sweep = (LONG_RANGE, "-D", "M", "130", "-D", "N", "100:900:100", "--machine", "ivy-bridge-ep")
    assert run(*sweep, "--plot", loop).exit_code == 0
    problem = ROOT / "examples/triad/triad.yaml"
    assert run(problem, "--machine", CALIBRATED, "--plot", launch).exit_code == 0
    assert loop.stat().st_size > 10_000
    assert launch.stat().st_size > 10_000


def test_refuses_bad_sizes() -> None:
    """Names the constant, what was expected, and an example."""
    ivy = ("--machine", "ivy-bridge-ep")
    assert "no value for M" in refuse(LONG_RANGE, "-D", "N", "100", *ivy)
    assert "at least 1" in refuse(LONG_RANGE, "-D", "N", "0", *ivy)
    assert "FIRST:LAST:STEP" in refuse(LONG_RANGE, "-D", "N", "many", *ivy)
    assert "FIRST <= LAST" in refuse(LONG_RANGE, "-D", "N", "9:2:1", *ivy)
    assert "one constant" in refuse(LONG_RANGE, "-D", "N", "1:9", "-D", "M", "1:9", *ivy)
    assert "never runs" in refuse(LONG_RANGE, "-D", "N", "5", "-D", "M", "130", *ivy)


def test_refuses_bad_options(tmp_path: Path) -> None:
    """Says which machine, unit, term or core count is wrong, and what there is."""
    assert "ivy-bridge-ep" in refuse(LONG_RANGE, "--machine", "no-such-machine")
    assert "cy/It" in refuse(LONG_RANGE, *PAPER, "--unit", "knots")
    assert "T_OL,T_nOL" in refuse(LONG_RANGE, *PAPER[:-1], "52")
    assert "1 to 10" in refuse(LONG_RANGE, *PAPER, "--cores", "11")
    assert "no size K" in refuse(LONG_RANGE, *PAPER, "--transitions", "K")
    assert "needs a CPU" in refuse(LONG_RANGE, "-D", "M", "9", "-D", "N", "9", "--machine", "a100")
    assert "cannot be read" in refuse(tmp_path / "missing.c", "--machine", "ivy-bridge-ep")
    assert "is not found" in refuse(
        LONG_RANGE, *PAPER, "--measure", "--compiler", "no-such-compiler"
    )


def test_refuses_loops_with_their_lines(tmp_path: Path) -> None:
    """Points at an index that is not affine, and at what is no loop."""
    loop = tmp_path / "loop.c"
    loop.write_text("double a[N];\nfor (int i = 0; i < N; ++i)\n  a[i*i] = 1.0;\n")
    complaint = refuse(loop, "-D", "N", "100", "--machine", "ivy-bridge-ep")
    assert ":3" in complaint
    loop.write_text("double a[N];\n")
    assert "no loop" in refuse(loop, "-D", "N", "100", "--machine", "ivy-bridge-ep")


def test_problems_and_loops_have_their_own_options() -> None:
    """Refuses options that belong to the other kind of file."""
    problem = ROOT / "examples/triad/triad.yaml"
    assert "for C loops" in refuse(problem, "--machine", CALIBRATED, "--measure")
    assert "OpenCL problems" in refuse(LONG_RANGE, *PAPER, "--device", "pocl")
    assert "model gpu" in refuse(problem, "--machine", "a100")
    spmv = ROOT / "examples/spmv_csr/spmv_csr.yaml"
    assert "--device" in refuse(spmv, "--machine", CALIBRATED)


def test_branches_have_a_range(tmp_path: Path) -> None:
    """Shows between which times a loop with a branch lies, and takes a stated share."""
    loop = tmp_path / "branch.c"
    loop.write_text(
        "double a[N], b[N], c[N], t;\n"
        "for (int i = 0; i < N; ++i) { if (a[i] > t) c[i] = a[i] * b[i]; else c[i] = 0; }\n"
    )
    words = (loop, "-D", "N", "4000000", "--machine", "ivy-bridge-ep")
    assert "branches " in run(*words).stdout
    [both], [few] = (
        read_json(*words, *more)["sizes"]  # type: ignore[misc]
        for more in ((), ("--taken", "0.02"))
    )
    assert both["least_cycles"] < few["ecm"]["cycles"] < both["ecm"]["cycles"]
    assert both["most_cycles"] == pytest.approx(both["ecm"]["cycles"])
    assert "--taken" in refuse(*words, "--taken", "2")


def test_the_core_comes_from_the_compiled_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles the loop and asks OSACA, or says why not; asked for explicitly, it is an error."""
    pytest.importorskip("osaca")
    if find_compiler() is None:
        pytest.skip("no C compiler is installed")
    words = (LOOPS / "triad.c", "-D", "N", "1000", "--machine", "ivy-bridge-ep")
    compiled, table = (
        read_json(*words, *more)["sizes"][0]  # type: ignore[index]
        for more in ((), ("--core", "table"))
    )
    assert compiled["in_core"]["provider"] == "osaca"
    assert table["in_core"]["provider"] == "table"
    assert "stands in" not in run(*words, "--architecture", "ZEN2", "--flags", "-O2").stdout
    assert "--per-pass" in refuse(*words, "--core", "osaca", "--in-core", "1,2")
    calling = (LOOPS / "exponential.c", *words[1:])
    assert "OSACA does not know exp" in run(*calling).stdout
    assert "calls exp: the terms are lower bounds" in run(*calling, "--core", "osaca").stdout
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CC", "")
    [without] = read_json(*words)["sizes"]  # type: ignore[misc]
    assert without["in_core"] == table["in_core"]
    assert any("not OSACA: no C compiler is found" in note for note in without["notes"])
    assert "install gcc or clang" in refuse(*words, "--core", "osaca")
