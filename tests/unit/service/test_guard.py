"""No source and no build option reaches a file; see also `test_attacks` and `test_file_reach`."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.service.guard import check_options, check_source
from kernelcast.service.settings import Limits

_LIMITS = Limits()


@given(st.text(alphabet="#%:?=/*\\ \t\r\ninclude<x>\"'define", max_size=60))
def test_whatever_compilers_take_as_an_include_is_refused(text: str) -> None:
    """A plain reading of the standard's first phases never finds one in what passes."""
    try:
        check_source(text, _LIMITS)
    except InputError:
        return
    spliced = text.replace("\r\n", "\n").replace("\r", "\n").replace("\\\n", "")
    assert not any(
        line.strip(" \t").startswith(("#include", "%:include")) for line in spliced.split("\n")
    )


@pytest.mark.parametrize(
    "part",
    ["#/*", "#", "# ", "/*", "#define ", "#define a ", "\\\n", "#a", "%:", '"', "#\\\n", "_"],
)
def test_odd_texts_are_checked_at_all(part: str) -> None:
    """Comments without an end and the like do not make the check take minutes."""
    text = part * (_LIMITS.source_bytes // len(part))
    try:
        check_source(text, _LIMITS)
    except InputError as error:
        assert "code: holds" in str(error)  # noqa: PT017 - either way is fine


@pytest.mark.parametrize(
    "option",
    [
        "-I/etc", "-I", "-include/etc/passwd", "-include", "-imacros x", "-D", "-DA=1 -I/etc",
        "-DA=\"x\"", "-DA='x'", "-DA=`x`", "-DA=\\", "@/etc/passwd", "/etc/passwd", "-g", "-s",
        "-cl-std=CL2.0 -I/etc", "-Xclang", "-fplugin=/x.so", "-o/x", "--config=x", "-DA=1\n-I/etc",
        "-x", "",
    ],
)  # fmt: skip
def test_build_options_that_could_name_files_are_refused(option: str) -> None:
    """Only definitions and language options pass."""
    with pytest.raises(InputError):
        check_options([option])


def test_usual_build_options_pass() -> None:
    """Definitions, which may stand apart, and language options."""
    options = ("-DN=4 -DDATA_TYPE=float -DN={N} -cl-fast-relaxed-math -cl-std=CL2.0 -cl-std=CLC++ "
               "-cl-std=CLC++2021 -w -DEMPTY -D N=4")  # fmt: skip
    check_options([*options.split(), "-D N=4"])


def test_options_of_corpus_examples_and_benchmarks_pass() -> None:
    """No problem that is ours is refused."""
    root = Path(__file__).parents[3]
    folders = ("src/kernelcast/training_data/corpus", "examples", "benchmarks/heldout")
    found = 0
    for path in sorted(one for name in folders for one in (root / name).rglob("*.yaml")):
        held = yaml.safe_load(path.read_text())
        options = held.get("build_options") if isinstance(held, dict) else None
        if options:
            check_options([options] if isinstance(options, str) else options)
            found += 1
    assert found > 20
