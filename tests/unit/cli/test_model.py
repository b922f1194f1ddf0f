import json
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from kernelcast.launches.modelling import cpu_loops
from kernelcast.sampling.host import Processor
from kernelcast.sampling.loop_benchmark import find_compiler
from support.commands import run_command

run = partial(run_command, "model", "cpu")
run_gpu = partial(run_command, "model", "gpu")
ROOT = Path(__file__).resolve().parents[3]
LOOPS = ROOT / "examples/loops"
LONG_RANGE = LOOPS / "3d-long-range.c"
CALIBRATED = ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"
needs_compiler = pytest.mark.skipif(
    find_spec("osaca") is None or find_compiler() is None, reason="no OSACA or no C compiler"
)
PAPER = ("-D", "M", "130", "-D", "N", "1015", "--machine", "ivy-bridge-ep", "--in-core", "52,54")


def read_json(*words: str | Path) -> dict[str, object]:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def refuse(*words: str | Path) -> str:
    result = run(*words)
    assert result.exit_code == 2, result.output
    return result.stderr


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


def test_problems_and_loops_have_their_own_options() -> None:
    """Refuses options that belong to the other kind of file."""
    problem = ROOT / "examples/triad/triad.yaml"
    assert "for C loops" in refuse(problem, "--machine", CALIBRATED, "--measure")
    assert "OpenCL problems" in refuse(LONG_RANGE, *PAPER, "--device", "pocl")
    assert "model gpu" in refuse(problem, "--machine", "a100")
    spmv = ROOT / "examples/spmv_csr/spmv_csr.yaml"
    assert "--device" in refuse(spmv, "--machine", CALIBRATED)


@needs_compiler
def test_the_core_comes_from_the_compiled_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles the loop and asks OSACA, or says why not; asked for explicitly, it is an error."""
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


@needs_compiler
def test_a_core_that_osaca_lacks_is_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibrated Zen 5 answers from its own instructions; OSACA's Zen 4 answers when asked."""
    processor = Processor(name="AMD EPYC", generation="26 2")
    monkeypatch.setattr(cpu_loops, "read_processor", lambda: processor)
    monkeypatch.setattr(cpu_loops, "get_host_cpu_name", lambda: "znver5")
    words = (LOOPS / "triad.c", "-D", "N", "1000", "--machine", CALIBRATED)
    [measured] = read_json(*words)["sizes"]  # type: ignore[misc]
    assert measured["in_core"]["provider"] == "table"
    assert any("OSACA has no data of Zen 5" in note for note in measured["notes"])
    [elder] = read_json(*words, "--core", "osaca", "--flags", "-O2")["sizes"]  # type: ignore[misc]
    assert elder["in_core"]["provider"] == "osaca"
    assert any("ZEN4 stands in for it" in note for note in elder["notes"])


STENCIL = ROOT / "examples/models/accesses/stencil2d5pt.yaml"
TYPED = (
    "--array", "src:float64:640x512", "--array", "dst:float64:640x512", "--global", "640,512",
    "--access", "src[x-1][y] if x > 0", "--store", "dst[x][y]",
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((STENCIL, "--machine", "a100", "--local", "64,32"), "at most 1024"),
        ((STENCIL, "--machine", "a100", "--local", "64"), "dimensions"),
        ((STENCIL, "--machine", "a100", "--local", "a,4"), "expected one to three whole numbers"),
        ((STENCIL, "--machine", "a100", "--fold", "2q"), "such as 2z"),
        ((STENCIL, "--machine", "a100", "--fold", "2z"), "2 dimensions"),
        ((STENCIL, "--machine", "a100", "-p", "M=3"), "no parameter is called M"),
        ((STENCIL, "--machine", "a100", "--sweep-size", "N=4"), "NAME=FIRST:LAST:STEP"),
        ((STENCIL, "--machine", "a100", "--sweep-size", "N=9:4:1"), "0 < FIRST <= LAST"),
        ((STENCIL, "--machine", "a100", "--plot", "chart.xyz"), "end the name in one"),
        ((STENCIL, "--machine", "a100", "--device", "cpu"), "no device can run"),
        ((STENCIL, "--machine", "a100", "--sweep-local", "--measured", "m.csv"), "--measured"),
        ((STENCIL, "--machine", "a100", "--measured", "none.csv"), "cannot be read"),
        ((STENCIL, "--machine", "a100", "--global", "64,64"), "are for accesses as text"),
        ((STENCIL, "--machine", "a100", "--sweep-local", "--local", "64,1"), "leave --local out"),
        ((*TYPED, "--machine", "a100", "-p", "N=3"), "--param replaces"),
        (("--machine", "a100"), "give a file"),
        ((STENCIL, "--machine", "a100", *TYPED), "give a file"),
        ((*TYPED, "--machine", "a100", "--access", "q[x]"), "'q' is not declared"),
        ((*TYPED, "--machine", "a100", "--array", "src:int8"), "declared twice"),
        ((*TYPED, "--machine", "a100", "--operation", "fp63=1"), "expected a count"),
        ((*TYPED[:4], "--access", "src[x][y]", "--machine", "a100"), "need --global"),
        ((*TYPED, "--machine", "a100", "--global", "0,4"), "global size is 0"),
        ((*TYPED, "--machine", "a100", "--hit-rates", "none"), "no hit rates are called"),
    ],
)
def test_bad_input_ends_with_status_2(words: tuple[str | Path, ...], complaint: str) -> None:
    """Says what is wrong on standard error, without a traceback."""
    result = run_gpu(*words)
    assert result.exit_code == 2, result.output
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_a_machine_without_its_largest_work_group_names_the_number(tmp_path: Path) -> None:
    """Names what is missing, and the command that finds it."""
    text = (ROOT / "src/kernelcast/data/machines/a100.yaml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("max_work_group_size")]
    path = tmp_path / "lame.yaml"
    path.write_text("\n".join(lines))
    result = run_gpu(STENCIL, "--machine", path, "--sweep-local")
    assert result.exit_code == 2
    assert "max_work_group_size is missing; `kernelcast calibrate`" in result.stderr
