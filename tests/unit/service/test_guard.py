"""No source reaches a file, no error tells of one, no text is what a database cannot keep."""

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError, SignatureError
from kernelcast.records.explanation import Explanation, Tier
from kernelcast.records.kernel import Kernel
from kernelcast.service import Limits
from kernelcast.service.errors import message_of, redact, redact_estimate, redact_paths
from kernelcast.service.guard import check_source, is_plain_json, is_text
from kernelcast.workers import WROTE
from support.builders import make_estimate
from support.service_attacks.attacks import ON_DEVICES, Attack, list_attacks
from support.service_attacks.target import Target, add_tokens, make_secret
from support.service_backend import FIRST, FakeBackend, make_settings, open_client

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


_ATTACKS = [one for one in list_attacks() if one.part != ON_DEVICES]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Give a service that lives as long as these tests."""
    folder = tmp_path_factory.mktemp("attacks")
    with pytest.MonkeyPatch.context() as patch, make_secret() as secret:
        patch.setenv("KERNELCAST_DATA", str(folder))
        settings = make_settings(folder, require_tokens=True, limits=Limits(wrong_tokens=1000))
        database = str(settings.database)
        backend = FakeBackend(database)
        with open_client(settings, backend) as client:
            tokens = add_tokens(database)
            yield Target(client, tokens, secret, FIRST, lambda: backend.calls["sample"])


@pytest.mark.parametrize("attack", _ATTACKS, ids=lambda one: one.id)
def test_an_attack_gets_nothing(target: Target, attack: Attack) -> None:
    """The true status; no file is shown or proven, nothing runs without the right, all goes on."""
    assert target.attack(attack) == []


_KERNEL = Kernel(
    name="fill",
    source="kernel void fill(global float *a)\n{\n\ta[0] = no_such + 1;\n// root:x:0:0\n}\n",
    source_name="problem (code)",
)
_HEAD = "the compiler of CPU refused the source:\n"

# As three runtimes write it.
_INTEL = """\
Compilation started
problem (code):3:9: error: use of undeclared identifier 'no_such'
    3 |         a[0] = no_such + 1;
      |                ^~~~~~~
Compilation failed"""
_POCL = """\
error: problem (code):3:9: use of undeclared identifier 'no_such'
2 warnings and 1 error generated.
Device pthread-haswell-AMD EPYC failed to build the program"""
_RUSTICL = """\
problem (code):3:9: error: use of undeclared identifier 'no_such'
Error executing LLVM compilation action."""


def test_messages_about_the_own_source_are_told_whole() -> None:
    """Each runtime's way of writing them is known, also of symbols that nothing defines."""
    for log in (
        _INTEL, _POCL, _RUSTICL,
        "Cannot find symbol no_such in kernel library",
        "JIT session error: Symbols not found: [ no_such ]",
        '(file=input,line=0,column=0,index=0): Unresolved external reference to "no_such".',
    ):  # fmt: skip
        assert redact(_HEAD + log, _KERNEL) == _HEAD + log


@pytest.mark.parametrize(
    "line",
    [
        # Not even a line that the caller has guessed right is confirmed.
        "/etc/shadow:1:1: error: no\n    1 | // root:x:0:0\n      | ^",
        "/etc/shadow:1:1: error: unknown type name 'root'",
        "error: /etc/shadow:1:1: unknown type name 'root'",
        "<inline asm>:1:1: error: unknown directive root",
        "In file included from problem (code):1:",
        "root:x:0:0",
        "    1 | root:x:0:0",
        "problem (code):9:1: error: root",
        "problem (code):0:1: error: root",
        "Options used by backend compiler: -I /opt/secret",
        "JIT session error: Symbols not found: [ their_root ]",
        "fatal error: cannot open file '/etc/shadow': root",
    ],
)
def test_what_speaks_of_other_files_is_withheld_and_counted(line: str) -> None:
    """Whatever a compiler quotes, and however it writes that."""
    told = redact(f"{_HEAD}{line}\n{_POCL}", _KERNEL)
    assert "root" not in told
    count = len(line.splitlines())
    assert f"({count} line{'s'[: count - 1]} withheld: " in told
    assert "no_such" in told


def test_paths_of_the_installation_are_removed() -> None:
    """Whatever error names them; fractions, routes and URLs are no paths of the host."""
    text = "1/2 of GET /v1/devices at http://x.example/usr/y; a/usr/b, float4/float8"
    assert redact_paths(text) == text
    for path in (f"{sys.prefix}/lib/x.py", Path.cwd() / "a", "/usr/share/pocl/include/_kernel.h"):
        assert redact_paths(f"cannot read {path}: no") == "cannot read (path withheld): no"
    assert sys.prefix not in redact_paths(f"'{sys.prefix}/bin', {sys.prefix}")
    assert "/usr" not in message_of(SignatureError("see /usr/include/x.h, line 3"))


def test_remarks_and_last_words_are_told_as_errors_are() -> None:
    """Warnings and reasons may hold an error's text, and what a stranger's kernel wrote."""
    told = redact(f"cpu: the process died (SIGABRT){WROTE}root:x:0 | /etc/shadow", _KERNEL)
    assert told == "cpu: the process died (SIGABRT); what the process wrote is withheld"
    estimate = replace(
        make_estimate(1.0),
        warnings=("not counted: refused:\n/etc/x:1:1: error: root",),
        explanation=Explanation(tier=Tier.LINEAR, missing={"hybrid": "in /usr/share/x: no"}),
    )
    answer = redact_estimate(estimate, _KERNEL)
    assert "root" not in str(answer.warnings)
    assert answer.explanation is not None
    assert answer.explanation.missing == {"hybrid": "in (path withheld): no"}
