"""No source reaches a file, no text is what a database cannot keep; see also `test_attacks`."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.service.guard import check_source, is_plain_json, is_text
from kernelcast.service.settings import Limits

Plain = dict[str, Any]
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
    with contextlib.suppress(InputError):  # either way is fine
        check_source(part * (_LIMITS.source_bytes // len(part)), _LIMITS)


@pytest.mark.parametrize(
    "option",
    ["-I", "-D", "-DA=\"x\"", "-DA='x'", "-DA=\\", "-cl-std=CL2.0 -I/etc", "--config=x",
     "-DA=1\n-I/etc", ""],
)  # fmt: skip
def test_build_options_that_could_name_files_are_refused(option: str) -> None:
    """Only definitions and language options pass; `test_attacks` tries more."""
    with pytest.raises(InputError):
        check_source("", _LIMITS, [option])


def test_options_of_corpus_examples_and_benchmarks_pass() -> None:
    """No problem that is ours is refused, nor are definitions that stand apart."""
    root = Path(__file__).parents[3]
    folders = ("src/kernelcast/training_data/corpus", "examples", "benchmarks/heldout")
    found = 0
    for path in sorted(one for name in folders for one in (root / name).rglob("*.yaml")):
        held = yaml.safe_load(path.read_text())
        options = held.get("build_options") if isinstance(held, dict) else None
        if options:
            check_source("", _LIMITS, [options] if isinstance(options, str) else options)
            found += 1
    assert found > 20
    check_source("", _LIMITS, ["-cl-std=CLC++2021", "-w", "-DN={N}", "-D", "N=4", "-D N=4"])


def test_what_looks_like_bad_text_is_taken(client: TestClient, problem: Plain) -> None:
    """An escaped backslash, a percent sign and a letter beyond 16 bits are text."""
    source = problem["code"] + " // \\u0000 %00 \\0 \U0001f600 größe"
    answer = client.post("/v1/problems", json={**problem, "code": source, "name": "\U0001f600"})
    assert answer.status_code == 200


@given(text=st.text() | st.text(st.characters(categories=["Cs", "Cc", "Lu"])))
def test_json_tells_what_the_text_tells(text: str) -> None:
    """However it is written; two halves side by side are one character in JSON."""
    written = json.dumps({"a": [{text: 1}]})
    (read,) = json.loads(written)["a"][0]
    expected = is_text(read)
    assert is_plain_json(written.encode()) == expected
    if expected:
        assert is_plain_json(json.dumps([read], ensure_ascii=False).encode())
