"""Compile errors show the submitted source and nothing else of the host."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.records.errors import SignatureError
from kernelcast.records.explanation import Explanation, Tier
from kernelcast.records.kernel import Kernel
from kernelcast.service.errors import message_of, redact, redact_estimate, redact_paths
from kernelcast.workers import WROTE
from support.builders import make_estimate

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


def test_what_a_process_wrote_is_withheld() -> None:
    """Standard error of a process that has run a stranger's kernel is not for callers."""
    told = redact(f"cpu: the process died (SIGABRT){WROTE}root:x:0 | /etc/shadow", _KERNEL)
    assert told == "cpu: the process died (SIGABRT); what the process wrote is withheld"


def test_paths_of_the_installation_are_removed() -> None:
    """Whatever error names them; fractions, routes and URLs are no paths of the host."""
    text = "1/2 of GET /v1/devices at http://x.example/usr/y; a/usr/b, float4/float8"
    assert redact_paths(text) == text
    for path in (f"{sys.prefix}/lib/x.py", Path.cwd() / "a", "/usr/share/pocl/include/_kernel.h"):
        assert redact_paths(f"cannot read {path}: no") == "cannot read (path withheld): no"
    assert sys.prefix not in redact_paths(f"'{sys.prefix}/bin', {sys.prefix}")
    assert "/usr" not in message_of(SignatureError("see /usr/include/x.h, line 3"))


def test_remarks_of_answers_are_told_as_errors_are() -> None:
    """Warnings and reasons may hold an error's text."""
    estimate = replace(
        make_estimate(1.0),
        warnings=("not counted: refused:\n/etc/x:1:1: error: root",),
        explanation=Explanation(tier=Tier.LINEAR, missing={"hybrid": "in /usr/share/x: no"}),
    )
    told = redact_estimate(estimate, _KERNEL)
    assert "root" not in str(told.warnings)
    assert told.explanation is not None
    assert told.explanation.missing == {"hybrid": "in (path withheld): no"}
