"""What of a compiler's messages is told to callers: what speaks of their own source, no more.

A build log may quote whatever file a compiler has opened, and name folders of this machine. Kept
are diagnostics that point into the submitted source, quotations that are lines of it, and a few
sentences without content; the others are counted.
"""

import contextlib
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from kernelcast.launches.data_folder import data_folder
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate
from kernelcast.records.kernel import Kernel
from kernelcast.workers import WROTE

_HIDDEN: Final = "(path withheld)"
_ROOTS: Final = (
    "/usr", "/opt", "/etc", "/var", "/lib", "/lib64", "/bin", "/proc", "/sys", "/dev", "/run",
    "/root", "/home", "/tmp", "/srv", "/mnt", "/media", "/boot", "/nix", "/snap",
)  # fmt: skip
_PATH_TAIL: Final = r"(?:/[^\s'\"`,;:()\[\]<>|]*)?(?![\w-])"
_SEVERITY = r"(?:(?:fatal )?error|warning|note|remark)"
_PLACE = r"(?P<file>[^:\n]*?):(?P<line>\d+):(?P<column>\d+):"
# Most compilers write the place first, PoCL the severity.
_DIAGNOSTIC = re.compile(rf"(?:{_SEVERITY}: )?{_PLACE}(?: {_SEVERITY}:)? (?P<message>.*)")
_QUOTED = re.compile(r"\s*\d+ \| ?(?P<text>.*)")
_MARKS = re.compile(r"[\s|~^;,(){}&*]*")
_SENTENCE = re.compile(
    r"(?:\d+ (?:warning|error)s?(?: and \d+ errors?)? generated\."
    r"|(?:Compilation|Linking|Device build) (?:started|done|failed)|Failed to build device program"
    r"|Error executing LLVM compilation action\.|Missing module\.|Error\(s\) while linking:"
    r"|Device [\w .@()-]+ failed to build the program|\.\.\. \d+ more lines)"
)
_ABSENT = re.compile(
    r"(?:Cannot find symbol (?P<pocl>\w+) in kernel library"
    r"|JIT session error: Symbols not found: \[ (?P<intel>\w+) \]"
    r"|\(file=input,[\w=,]+\): Unresolved external reference to \"(?P<rusticl>\w+)\"\.)"
)


def redact(text: str, kernel: Kernel) -> str:
    """Give what a caller may read of an error of its kernel."""
    said, wrote, _ = text.partition(WROTE)
    head, *log = said.splitlines() or [""]
    # Keep lines about the submitted source; count the others.
    told = [head]
    withheld = 0
    is_ours = False  # whether the last diagnostic was about the source
    lines = kernel.source.splitlines()
    quotable = {_bare(one) for one in lines} - {""}
    words = frozenset(re.findall(r"\w+", kernel.source))
    for line in filter(str.strip, log):
        found = _DIAGNOSTIC.fullmatch(line)
        if found is not None:
            is_ours = found["file"].strip() in {kernel.source_name, ""}
            is_ours = is_ours and 1 <= int(found["line"]) <= len(lines)
        absent, quoted = _ABSENT.fullmatch(line.strip()), _QUOTED.fullmatch(line)
        if found:
            is_told = is_ours
        elif absent:  # or a sentence without content
            is_told = absent[absent.lastindex or 0] in words
        else:
            is_told = _SENTENCE.fullmatch(line.strip()) is not None
        is_quotation = _bare(quoted["text"] if quoted else line) in quotable
        if is_told or (is_ours and (is_quotation or _MARKS.fullmatch(line))):
            told.append(line)
        else:
            withheld += 1
            is_ours = False
    if withheld:
        what = "1 line" if withheld == 1 else f"{withheld} lines"
        verb = "it does" if withheld == 1 else "they do"
        told.append(f"({what} withheld: {verb} not speak of the submitted source)")
    if wrote:
        told[-1] += "; what the process wrote is withheld"
    return redact_paths("\n".join(told))


def redact_estimate(estimate: Estimate, kernel: Kernel) -> Estimate:
    """Give an answer whose remarks are told as errors are."""
    explanation = estimate.explanation
    if explanation is not None:
        explanation = replace(
            explanation,
            missing={tier: redact(why, kernel) for tier, why in explanation.missing.items()},
            notes=tuple(redact(one, kernel) for one in explanation.notes),
        )
    warnings = tuple(redact(one, kernel) for one in estimate.warnings)
    return replace(estimate, warnings=warnings, explanation=explanation)


def redact_paths(text: str) -> str:
    if "/" not in text:
        return text
    # Give folders whose names say how this service is installed, longest first.
    own = {sys.prefix, sys.base_prefix, tempfile.gettempdir(), str(Path(__file__).parents[2])}
    for find in (Path.home, Path.cwd, data_folder):
        with contextlib.suppress(RuntimeError, OSError, InputError):
            own.add(str(find()))
    known = {one.rstrip("/") for one in own} | set(_ROOTS)
    folders = sorted((one for one in known if one.startswith("/")), key=len, reverse=True)
    names = "|".join(map(re.escape, folders))
    return re.sub(rf"(?<![\w/.:-])(?:{names}){_PATH_TAIL}", _HIDDEN, text)


def _bare(line: str) -> str:
    """Give a line without the blanks that compilers write in other ways."""
    return " ".join(line.split())
