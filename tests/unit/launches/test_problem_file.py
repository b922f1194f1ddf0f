import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import (
    Access,
    BufferArgument,
    ElementType,
    ImageArgument,
    Init,
    LocalArgument,
    SamplerArgument,
    ScalarArgument,
)
from kernelcast.records.arithmetic import ArithmeticProblem, evaluate
from kernelcast.records.errors import InputError, ProblemFileError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.arguments import make_array

PROBLEM = """\
# A comment on the first line.
source: scale.cl
kernel: scale
build_options: ["-DTYPE=float", "-w"]
global_size: ["{N} * 2", 8]
local_size: [64, 1]
global_offset: [0, 16]
parameters: {N: 512, HALF: "{N} // 2", SWEPT: [3, 4, 5]}
args:
  - {buffer: float32, count: "{N}", init: uniform, low: -1, high: 1, access: read}
  - {buffer: float4, count: 16, init: content.npy}
  - {scalar: int32, value: "{HALF} + {SWEPT}"}
  - {scalar: float32x2, value: [0.5, 1e-3]}
  - {local: 4 * 256}
"""
Write = Callable[[str], Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a source and an array, for problem files beside them."""
    folder = tmp_path_factory.mktemp("problems")
    (folder / "scale.cl").write_text("kernel void scale(global float *a) { a[0] = 1; }\n")
    np.save(folder / "content.npy", np.zeros((16, 4), dtype=np.float32))
    return folder


@pytest.fixture
def write(folder: Path) -> Write:
    def _write(text: str) -> Path:
        path = folder / "scale.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return _write


def change(line: int, new: str) -> str:
    """Replace a line of the good problem, counted from 1."""
    lines = PROBLEM.splitlines()
    lines[line - 1] = new
    return "\n".join(lines) + "\n"


def test_reads_every_key(write: Write) -> None:
    """Reads kernel, options, index space and every kind of argument, parameters filled in."""
    path = write(PROBLEM)
    problem = read_problem(path)
    assert problem.name == "scale"
    assert (problem.kernel.name, problem.kernel.source_name) == ("scale", "scale.cl")
    assert problem.kernel.build_options == ("-DTYPE=float", "-w")
    assert problem.ndrange.global_size == (1024, 8)
    assert problem.ndrange.local_size == (64, 1)
    assert problem.ndrange.global_offset == (0, 16)
    assert problem.arguments == (
        BufferArgument(
            element=ElementType("float32"), count=512, init=Init.UNIFORM, low=-1, high=1,
            access=Access.READ,
        ),
        BufferArgument(
            element=ElementType("float32", 4), count=16, init=Init.FILE,
            path=path.parent / "content.npy",
        ),
        ScalarArgument(element=ElementType("int32"), values=(259,)),
        ScalarArgument(element=ElementType("float32", 2), values=(0.5, 1e-3)),
        LocalArgument(bytes=1024),
    )  # fmt: skip
    text = "code: |\n  kernel void k() {}\nkernel: k\nglobal_size: 64\nlocal_size: null\nargs: []\n"
    problem = read_problem(write(text))  # the required keys alone
    assert problem.kernel.source == "kernel void k() {}\n"
    assert problem.ndrange == NDRange(global_size=(64,))
    assert problem.arguments == ()


def test_included_files_are_found_from_anywhere(write: Write, folder: Path) -> None:
    """Folders begin at the problem file, and the source's own is one; others stay as they are."""
    text = change(4, 'build_options: ["-Ilib", "-I/usr/lib", "-w"]')
    path = write(text.replace("source: scale.cl", "source: including.cl"))
    source = '#include "shared.h"\nkernel void scale(global float *a) { a[0] = ONE; }\n'
    (folder / "including.cl").write_text(source)
    assert read_problem(path).kernel.build_options == (
        f"-I{folder}/lib", "-I/usr/lib", "-w", f"-I{folder}",
    )  # fmt: skip


def test_callers_parameters_replace_the_files(write: Write) -> None:
    """Takes the caller's values, also in parameters that follow from them: values, not text."""
    path = write(change(8, 'parameters: {N: 512, SWEPT: [3, 4, 5], HALF: "{SWEPT} ** 2"}'))
    problem = read_problem(path, parameters={"N": 1000, "SWEPT": -2})
    assert problem.ndrange.global_size == (2000, 8)
    assert problem.arguments[2] == ScalarArgument(element=ElementType("int32"), values=(2,))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (change(5, "global_size: [1,"), None, "not valid YAML"),
        ("", 1, "the file is empty"),
        ("- a list\n", 1, r"expected `key: value` pairs .* found a list"),
        (change(3, "# no kernel"), 2, "the key `kernel` is missing"),
        (change(5, "# no size"), 2, "the key `global_size` is missing"),
        (change(2, "# no source"), 3, "give either `source: FILE.cl` or `code: |`"),
        (PROBLEM + "code: x\n", 2, "give either `source: FILE.cl` or `code: |`"),
        (change(9, "args: {}").split("  - ")[0], 9, "expected a list, found a mapping"),
        *((change(line, new), line, message) for line, new, message in (
            (3, "kernle: scale", "unknown key, did you mean `kernel`?"),
            (6, "zzz: red", "unknown key; the keys here are source, code, kernel"),
            (6, "kernel: scale", "is given twice; keep one"),
            (2, "source: missing.cl", r"there is no file .*missing\.cl"),
            (2, "source: []", "expected a file, or a list of files, found nothing"),
            (2, "source: [scale.cl, [a]]", "expected a text, found a list"),
            (3, "kernel: ''", "the name is empty"),
            (5, "global_size: [0, 8]", "at least 1, found 0"),
            (5, "global_size: [1.5, 8]", "expected a whole number, found 1.5"),
            (5, "global_size: [1, 1, 1, 1]", "expected one to three numbers, found 4"),
            (5, "global_size: [many, 8]", "expected a number or arithmetic, found 'many'"),
            (5, 'global_size: ["{M}", 8]', "{M} is no parameter"),
            (5, 'global_size: ["{N} / 0", 8]', "division by zero"),
            (6, "local_size: [64]", "has 1 dimensions, the global size has 2"),
            (6, "local_size: [64, 9]", "axis 1: local size 9 exceeds global size 8"),
            (7, "global_offset: [0, -1]", "at least 0, found -1"),
            (8, "parameters: [N]", "expected `NAME: value` pairs, found a list"),
            (8, "parameters: {N: 512, HALF: 2, SWEPT: []}", "SWEPT"),
            (10, "  - {init: ones}", "`scalar: TYPE`, `local: BYTES`"),
            (10, "  - {buffer: int8, local: 4}", "give one of `buffer: TYPE`"),
            (10, "  - {buffer: int8, value: 4}", "unknown key"),
            (10, "  - {buffer: int9, count: 4}", "element type 'int9' is unknown"),
            (10, "  - {buffer: int8, count: 4, init: random}", "found 'random'"),
            (10, "  - {buffer: int8, count: 4, init: no.npy}", "there is no file"),
            (10, "  - {buffer: int8, count: 4, access: rw}", "read, write, read_write"),
            (10, "  - {buffer: int8, count: 4, low: 1}", "the range of `init: uniform`"),
            (10, "  - {buffer: int32, count: 4, init: uniform, low: 0.2, high: 0.8}",
             "no whole number is at least 0.2"),
            (10, "  - {buffer: int8, count: 4, init: uniform, low: 3, high: 3}",
             "low 3 is not below high 3"),
            (10, "  - {buffer: uint8, count: 4, init: uniform, high: 1000}", "1000"),
            (12, "  - {scalar: uint8, value: 300}", "value 300 does not fit uint8"),
            (12, "  - {scalar: float2, value: 1}", "expected 2 numbers for float32x2"),
            (10, "  - {buffer: null, count: 3}", "unknown key"),
            (10, "  - {buffer: {}, count: 3}", "at least one field"),
            (10, "  - {buffer: {x: float}, count: 3, init: ones}", "zeros or from a file"),
            (10, "  - {buffer: int8, count: 4, init: {base64: '!'}}", "is no Base64"),
            (10, "  - {buffer: int8, count: 4, init: {base64: AAA=}}", "2 bytes given"),
            (10, "  - {image: rgba, size: 4, channel: int}", "expected one of snorm_int8"),
            (10, "  - {image: r, size: [4, 4, 4], layers: 2, channel: float}",
             "`layers` are of images of one or two axes"),
            (12, "  - {struct: {x: float, n: int}, value: {x: 1}}", "key `n` is missing"),
            (12, "  - {struct: {n: uchar}, value: {n: 300}}", "300 does not fit uint8"),
        )),
    ],
)  # fmt: skip
def test_every_complaint_names_file_and_line(
    write: Write, text: str, line: int | None, message: str
) -> None:
    path = write(text)
    with pytest.raises(ProblemFileError) as caught:
        read_problem(path)
    said = str(caught.value)
    place = rf"{re.escape(str(path))}:{r'[0-9]+' if line is None else line}[: ]"
    assert re.match(place, said), said
    assert message in said or re.search(message, said), said


def test_missing_and_unreadable_files_are_named(tmp_path: Path) -> None:
    """Names the file that is missing, is a folder or no text; says where a source belongs."""
    with pytest.raises(ProblemFileError, match=r"no\.yaml: the problem file cannot be read"):
        read_problem(tmp_path / "no.yaml")
    with pytest.raises(ProblemFileError, match="cannot be read"):
        read_problem(tmp_path)
    (tmp_path / "bytes.yaml").write_bytes(b"kernel: \xff\xfe")
    with pytest.raises(ProblemFileError, match=r"bytes\.yaml: .* no UTF-8 text"):
        read_problem(tmp_path / "bytes.yaml")
    source = tmp_path / "scale.cl"
    source.write_text("kernel void scale(global float *a) { a[0] = 1; }\n")
    with pytest.raises(ProblemFileError, match=r"a problem file, by `source: scale\.cl`"):
        read_problem(source)


def test_sources_follow_each_other(folder: Path, write: Write) -> None:
    """Builds a program of several files, in their order, each included beside its own."""
    (folder / "common.cl").write_text("#define TWICE(x) (2 * (x))")
    problem = read_problem(write(change(2, "source: [common.cl, scale.cl]")))
    assert problem.kernel.source.startswith("#define TWICE(x) (2 * (x))\n")
    assert problem.kernel.source_name == "common.cl + scale.cl"


def test_structures_lie_as_in_opencl_c(folder: Path, write: Write) -> None:
    """Lays fields at multiples of their sizes, by value or in buffers, also of NumPy's records."""
    fields = "{flag: uchar, at: float3, n: ushort}"
    given = f"{{struct: {fields}, value: {{flag: 7, at: [1, 2, 3], n: 258}}}}"
    *_, value = read_problem(write(change(14, f"  - {given}"))).arguments
    layout = {
        "names": ["flag", "at", "n"], "formats": ["u1", "(3,)f4", "u2"], "offsets": [0, 16, 32],
        "itemsize": 48,
    }  # fmt: skip
    record = np.zeros(1, dtype=np.dtype(layout))  # type: ignore[call-overload]  # NumPy takes it
    record[0] = (7, (1, 2, 3), 258)
    assert isinstance(value, ScalarArgument)
    assert bytes(map(int, value.values)) == record.tobytes()
    np.save(folder / "one.npy", record)
    np.save(folder / "many.npy", np.repeat(record, 5))
    from_file = f"{{struct: {fields}, value: one.npy}}"
    *_, again = read_problem(write(change(14, f"  - {from_file}"))).arguments
    assert again == value
    many = f"{{buffer: {fields}, count: 5, init: many.npy}}"
    *_, buffer = read_problem(write(change(14, f"  - {many}"))).arguments
    assert isinstance(buffer, BufferArgument)
    assert make_array(buffer, seed=0).tobytes() == 5 * record.tobytes()


def test_images_samplers_and_null(write: Write) -> None:
    """Describes images by their channels, samplers by OpenCL's words, NULL by nothing."""
    image = "{image: rgba, channel: unorm_int8, size: [8, 4], layers: 3, init: uniform}"
    *_, read = read_problem(write(change(14, f"  - {image}"))).arguments
    assert isinstance(read, ImageArgument)
    assert (read.bytes, read.type_name, str(read.element)) == (384, "image2d_array_t", "uint8x4")
    linear = change(14, "  - {sampler: linear, normalized: true}")
    *_, sampler = read_problem(write(linear)).arguments
    assert sampler == SamplerArgument(filter="linear", address="clamp_to_edge", normalized=True)
    *_, null = read_problem(write(change(14, "  - {buffer: null}"))).arguments
    assert isinstance(null, BufferArgument)
    assert null.bytes == 0


PIECES = st.sampled_from([
    "", " ", "\n", ":", "- ", "{", "}", "[", "]", "[]", "{}", '"', "'", "|", ">", "&a ", "*a",
    "!!int ", "null", "~", "true", "0", "-1", "1e400", "9" * 40, ".inf", ".nan", "{N}", "{X}",
    "{N", "\t", "#", "N: ", "args: ", "code: ", "source: ", "init: ", "x.npy", "**", "//", "% 0",
    "\\x00", "\\ud800", "? ", "<<: ", "---\n", "...\n", "%YAML 1.1\n", "\ufeff", "\x85", "é",
    "1_0", "0x10", "lambda: 0", "__import__('os')",
])  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = PROBLEM
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 12)))
        text = text[:begin] + draw(PIECES) + text[end:]
    return text


def read_text(folder: Path, text: str) -> Problem | None:
    """Read a text as a problem file; None if it is refused in the right way."""
    path = folder / "scale.yaml"
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
        change(3, 'kernel: "\\ud800"'),
        change(2, 'source: "a\\0b"'),
        change(2, f"source: {'a' * 300}.cl"),
        change(10, f"  - {{buffer: int8, count: 4, init: {'a' * 300}.npy}}"),
        change(5, f"global_size: ['{'(' * 400}1{')' * 400}', 8]"),
        change(5, "global_size: [2 ** 2 ** 2 ** 2 ** 2 ** 2, 8]"),
        change(5, f"global_size: [{'9' * 5000}, 8]"),
        change(5, 'global_size: ["{N}\\0", 8]'),
    ],
    ids=["deep lists", "deep mappings", "own anchor", "lone surrogate", "zero byte", "long name",
         "long file name", "deep formula", "tower", "long number", "zero byte in formula"],
)  # fmt: skip
def test_extreme_files_are_refused(folder: Path, text: str) -> None:
    """Refuses files that reach the limits of YAML, Python or the file system as bad input."""
    assert read_text(folder, text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("-7 // 2 + 3 % -5", -6), ("2 * (3 + 4) / 8 - 0.5", 1.25), ("-2 ** 2 ** 3", -256),
     ("1e3 % 7 // 0.5", 12.0), ("2**64 - 1", 0xFFFF_FFFF_FFFF_FFFF)],
)  # fmt: skip
def test_formulas_mean_what_they_mean_in_python(text: str, value: float) -> None:
    """Seeds and masks of a `ulong` reach beyond the numbers that have a sign."""
    assert evaluate(text) == value


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "N", "1 if 2 else 3", "[1]", "'a'", "True", "1 < 2", "~1", "1j", "f(1)",
     "2 ** 100", "2**64 + 2**63", "(-8) ** 0.5", "1e309", "0 ** -1", "1 << 4", ""],
)  # fmt: skip
def test_nothing_but_arithmetic_is_computed(text: str) -> None:
    """Refuses names, calls, comparisons, other operators and results beyond 64 bits."""
    with pytest.raises(ArithmeticProblem):
        evaluate(text)
