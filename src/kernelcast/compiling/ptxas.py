"""Asks NVIDIA's assembler what a kernel needs on a GPU: registers, spills, shared memory."""

import functools
import os
import re
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from kernelcast.compiling import cache
from kernelcast.compiling.compiler import run_limited
from kernelcast.compiling.libraries import list_cuda_folders
from kernelcast.compiling.targets import choose_processor
from kernelcast.records.errors import CompileError, MissingExtraError

_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)'")
_NUMBERS: Final = {
    "registers": re.compile(r"Used (\d+) registers"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "barriers": re.compile(r"used (\d+) barriers"),
}
_SUPPORTED: Final = re.compile(r"'(sm_\d+\w?)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class PtxasFacts:
    """What the assembler says of one kernel, per work-item but for shared memory."""

    registers: int
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    shared_bytes: int = 0
    """Static local memory of a work-group."""
    barriers: int = 0


@functools.cache
def find_ptxas() -> Path | None:
    wheels, toolkits = ([str(folder / "bin") for folder in part] for part in list_cuda_folders())
    folders = [*reversed(wheels), os.environ.get("PATH", os.defpath), *toolkits]
    found = shutil.which("ptxas", path=os.pathsep.join(folders))
    return Path(found) if found else None


@functools.cache
def _list_processors(ptxas: Path) -> tuple[str, ...]:
    """List the GPUs that it knows: that of CUDA 13 knows none before sm_75."""
    with tempfile.TemporaryDirectory(prefix="kernelcast-ptxas-") as made:
        _, text = run_limited([str(ptxas), "--help"], Path(made), 120.0)
    return tuple(dict.fromkeys(_SUPPORTED.findall(text)))


def assemble_ptx(text: str, processor: str) -> dict[str, PtxasFacts]:
    """Assemble PTX for a GPU, or the nearest that ptxas knows; facts by kernel."""
    ptxas = find_ptxas()
    if ptxas is None:
        msg = "no ptxas was found; install it with `pip install 'kernelcast[cuda]'`"
        raise MissingExtraError(msg)
    architecture = choose_processor(processor, _list_processors(ptxas))
    status = ptxas.stat()
    key = cache.digest((text, architecture, f"{ptxas} {status.st_size} {status.st_mtime_ns}"))
    entry = cache.read(key)
    if entry is None:
        with tempfile.TemporaryDirectory(prefix="kernelcast-ptxas-") as made:
            Path(made, "code.ptx").write_text(text, encoding="utf-8")
            command = [str(ptxas), "-arch", architecture, "-v", "code.ptx", "-o", "code.cubin"]
            code, output = run_limited(command, Path(made), 120.0)
        if code != 0:
            raise CompileError(output.strip() or f"ptxas ended with status {code}")
        entry = {name: asdict(facts) for name, facts in _read(output).items()}
        cache.write(key, entry)
    return {name: PtxasFacts(**numbers) for name, numbers in entry.items()}


def _read(output: str) -> dict[str, PtxasFacts]:
    _, *parts = _ENTRY.split(output)
    facts = {}
    for name, words in zip(parts[::2], parts[1::2], strict=True):
        numbers = {
            key: int(match[1]) for key, pattern in _NUMBERS.items()
            if (match := pattern.search(words))
        }  # fmt: skip
        if "registers" in numbers:
            facts[name] = PtxasFacts(**numbers)
    return facts
