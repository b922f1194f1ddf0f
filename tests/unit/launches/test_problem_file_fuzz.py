import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arithmetic import ArithmeticProblem, evaluate
from kernelcast.records.errors import InputError
from kernelcast.records.problem import Problem

SEED = """\
code: "kernel void k(global float *a) {}"
kernel: k
build_options: ["-DN={N}"]
global_size: ["{N} * 2", 8]
local_size: [64, 1]
global_offset: [0, 16]
parameters: {N: 512, HALF: "{N} // 2", SWEPT: [3, 4]}
args:
  - {buffer: float32x4, count: "{N}", init: uniform, low: -1, high: 1, access: read}
  - {scalar: int32, value: "{HALF} + 1"}
  - {scalar: float2, value: [0.5, 1e-3]}
  - {local: 64}
"""
PIECES = st.sampled_from([
    "", " ", "\n", ":", "- ", "{", "}", "[", "]", "[]", "{}", '"', "'", "|", ">", "&a ", "*a",
    "!!int ", "null", "~", "true", "0", "-1", "1e400", "9" * 40, ".inf", ".nan", "{N}", "{X}",
    "{N", "\t", "#", "N: ", "args: ", "code: ", "source: ", "init: ", "x.npy", "**", "//", "% 0",
    "\\x00", "\\ud800", "? ", "<<: ", "---\n", "...\n", "%YAML 1.1\n", "\ufeff", "\x85", "é",
    "1_0", "0x10", "lambda: 0", "__import__('os')",
])  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Draw a good problem file with some spans replaced."""
    text = SEED
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 12)))
        text = text[:begin] + draw(PIECES) + text[end:]
    return text


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Give a folder for the files."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def read_text(folder: Path, text: str) -> Problem | None:
    """Read a text as a problem file; None if it is refused in the right way."""
    path = folder / "fuzzed.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        return read_problem(path)
    except InputError as error:
        complaint = str(error)
    assert str(path) in complaint
    return None


@settings(max_examples=200)
@given(text=mutated() | st.text(st.characters(codec="utf-8"), max_size=60))
def test_damaged_files_are_read_or_refused(folder: Path, text: str) -> None:
    """Reads a damaged problem file or refuses it as bad input, naming the file; nothing else."""
    problem = read_text(folder, text)
    if problem is not None:
        assert problem.ndrange.work_item_count >= 1
        assert len(problem.kernel.digest) == 64


@pytest.mark.parametrize(
    "text",
    [
        "[" * 3000,
        "{a: " * 3000,
        "kernel: &a [*a]",
        SEED.replace("kernel: k", 'kernel: "\\ud800"'),
        SEED.replace("code: ", 'source: "a\\0b" #'),
        SEED.replace("code: ", f"source: {'a' * 300}.cl #"),
        SEED.replace("init: uniform, low: -1, high: 1", f"init: {'a' * 300}.npy"),
        SEED.replace("{N} * 2", "(" * 400 + "1" + ")" * 400),
        SEED.replace("{N} * 2", "2 ** 2 ** 2 ** 2 ** 2 ** 2"),
        SEED.replace("{N} * 2", "9" * 5000),
        SEED.replace("{N} * 2", "{N}\\0"),
        SEED.replace("SWEPT: [3, 4]", "SWEPT: []"),
    ],
    ids=["deep lists", "deep mappings", "own anchor", "lone surrogate", "zero byte", "long name",
         "long file name", "deep formula", "tower", "long number", "zero byte in formula",
         "empty sweep"],
)  # fmt: skip
def test_extreme_files_are_refused(folder: Path, text: str) -> None:
    """Refuses files that reach the limits of YAML, Python or the file system as bad input."""
    assert read_text(folder, text) is None


FORMULAS = st.recursive(
    st.integers(0, 1000).map(str) | st.floats(0.001, 1000).map(repr),
    lambda inner: (
        st.builds(
            "({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner
        )
        | st.builds("-{}".format, inner)
    ),
    max_leaves=8,
)


@given(formula=FORMULAS)
def test_formulas_mean_what_they_mean_in_python(formula: str) -> None:
    """Computes formulas as Python does, or refuses those that divide by zero or grow too large."""
    try:
        expected = eval(formula)  # a formula of our own making
    except ZeroDivisionError:
        with pytest.raises(ArithmeticProblem, match="division by zero"):
            evaluate(formula)
        return
    try:
        value = evaluate(formula)
    except ArithmeticProblem as problem:
        complaint = str(problem)
    else:
        assert value == expected
        return
    assert "64-bit" in complaint


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "N", "1 if 2 else 3", "[1]", "'a'", "True", "1 < 2", "~1", "1j", "f(1)",
     "2 ** 100", "2**64 + 2**63", "(-8) ** 0.5", "1e309", "0 ** -1", "1 << 4", ""],
)  # fmt: skip
def test_nothing_but_arithmetic_is_computed(text: str) -> None:
    """Refuses names, calls, comparisons, other operators and results beyond 64 bits; seeds and
    masks of a `ulong` reach beyond the numbers that have a sign."""
    with pytest.raises(ArithmeticProblem):
        evaluate(text)
    assert evaluate("2**64 - 1") == 0xFFFF_FFFF_FFFF_FFFF
