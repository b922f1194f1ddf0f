from functools import partial
from pathlib import Path

import pytest

from support.commands import run_command

run = partial(run_command, "model")
ROOT = Path(__file__).resolve().parents[3]
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
