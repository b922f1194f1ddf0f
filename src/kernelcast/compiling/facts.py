"""Counts what assembly for a GPU holds: instructions by kind, memory accesses, registers."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import yaml

from kernelcast.compiling.compilation import Compiled
from kernelcast.compiling.compiler import ask, find_ptxas
from kernelcast.compiling.execution import Instruction, find_ptx_body, read_code
from kernelcast.compiling.targets import CodeFormat, choose_processor
from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.errors import InputError, KernelNotFoundError, MissingExtraError


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    operation: str
    """``load``, ``store`` or ``atomic``."""
    address_space: str
    """``global``, ``local``, ``constant``, ``private`` (spills, arrays), ``generic``, or
    ``argument`` of the kernel's own arguments."""
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFacts:
    kernel: str
    instructions: Mapping[str, int]
    """Numbers by kind, each counted once: ``fp32``, ``fp64``, ``fp16``, ``special`` (roots,
    exponentials, sines and divisions), ``int``, ``convert``, ``move``, ``scalar`` (AMD: once for
    all work-items of a wavefront), ``matrix``, ``shuffle``, ``memory``, ``atomic``, ``barrier``,
    ``fence``, ``branch``, ``call``, ``image``, ``other``."""
    accesses: Mapping[Access, int]
    registers: Trait[int]
    """32-bit vector registers of a work-item; assumed where no assembler was asked."""
    scalar_registers: int | None = None
    """AMD: of a wavefront."""
    local_bytes: int
    private_bytes: int
    """Private memory of a work-item that is not in registers."""
    spill_bytes: int
    """Moved by the instructions that spill registers, or kept by them (AMD)."""
    waves_per_simd: int | None = None
    """AMD: wavefronts that fit into a SIMD unit by registers, as its compiler says."""


def read_facts(compiled: Compiled, kernel: str) -> CodeFacts:
    if kernel not in {one.name for one in compiled.kernels}:
        names = ", ".join(one.name for one in compiled.kernels) or "none"
        msg = f"{compiled.target}: the code defines no kernel {kernel!r}; it has {names}"
        raise KernelNotFoundError(msg)
    scalar_registers = waves = None
    if compiled.target.format is CodeFormat.PTX:
        body = find_ptx_body(compiled.text, kernel)
        instructions = read_code(body)
        if find_ptxas() is not None and not compiled.missing:
            asked = assemble_ptx(compiled.text, compiled.target.processor)[kernel]
            registers = Trait(value=asked.registers, source=TraitSource.REPORTED)
            local, private = asked.shared_bytes, asked.stack_bytes
            spills = asked.spill_store_bytes + asked.spill_load_bytes
        else:
            registers = Trait(value=estimate_registers(instructions), source=TraitSource.ASSUMED)
            used = set(re.findall(r"\b[\w$]+\b", body))
            local = sum(
                int(match[1]) // 8 * math.prod(map(int, re.findall(r"\d+", match[2])))
                for match in _PTX_LOCAL.finditer(compiled.text)
                if used & set(re.findall(r"[\w$]+", match[0]))
            )
            private = sum(map(int, re.findall(r"\.local .*?\.b8\s+\S+?\[(\d+)\]", body)))
            spills = 0
        found = [_classify_ptx(one) for one in instructions if not isinstance(one, str)]
    elif compiled.target.format is CodeFormat.AMD:
        # Clang before 16 tags names that YAML could take for something else.
        metadata = _AMD_METADATA.findall(compiled.text)[0].replace("!str ", "")
        kernels = yaml.load(metadata, _LOADER)["amdhsa.kernels"]
        noted = next(one for one in kernels if one[".name"] == kernel)
        start = re.search(rf"^{re.escape(kernel)}:", compiled.text, re.MULTILINE)
        code = compiled.text[start.end() :] if start else ""
        body = code.partition("\n.Lfunc_end")[0].partition("\t.section\t.rodata")[0]
        occupancy = re.search(r"^; Occupancy: (\d+)", code, re.MULTILINE)
        waves = int(occupancy[1]) if occupancy else None
        registers = Trait(value=int(noted[".vgpr_count"]), source=TraitSource.REPORTED)
        scalar_registers = int(noted[".sgpr_count"])
        local = int(noted[".group_segment_fixed_size"])
        private = int(noted[".private_segment_fixed_size"])
        spills = 4 * int(noted.get(".vgpr_spill_count", 0))
        found = [*map(_classify_amd, _AMD_INSTRUCTION.findall(body))]
    else:
        msg = f"target {compiled.target}: facts are read from PTX and AMD assembly; name a GPU"
        raise InputError(msg)
    return CodeFacts(
        kernel=kernel, instructions=dict(sorted(Counter(kind for kind, _ in found).items())),
        accesses=Counter(access for _, access in found if access), registers=registers,
        scalar_registers=scalar_registers, local_bytes=local, private_bytes=private,
        spill_bytes=spills, waves_per_simd=waves,
    )  # fmt: skip


_ENTRY: Final = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES: Final = re.compile(r"Function properties for '?([^'\s]+)'?")
_SPILLS: Final = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_PTXAS_SUPPORTED: Final = re.compile(r"'(sm_\d+\w?)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class PtxasFacts:
    """What the assembler says of one kernel, per work-item but for shared memory."""

    registers: int
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    shared_bytes: int = 0
    barriers: int = 0


def read_ptxas_log(text: str) -> dict[str, PtxasFacts]:
    """Read what ``ptxas --verbose`` says of each kernel; NVIDIA's driver logs the same. Functions
    that a kernel calls have properties of their own among its lines."""
    found = {}
    _, *parts = _ENTRY.split(text)
    for name, lines in zip(parts[::2], parts[1::2], strict=True):
        _, *others = _PROPERTIES.split(lines)
        own = dict(zip(others[::2], others[1::2], strict=True)).get(name, "")
        spills, shared = _SPILLS.search(own), re.search(r"(\d+) bytes smem", lines)
        barriers = re.search(r"used (\d+) barriers", lines)
        stack, stores, loads = map(int, spills.groups()) if spills else (0, 0, 0)
        if registers := re.search(r"\bUsed (\d+) registers", lines):
            found[name] = PtxasFacts(
                registers=int(registers[1]), stack_bytes=stack, spill_store_bytes=stores,
                spill_load_bytes=loads, shared_bytes=int(shared[1]) if shared else 0,
                barriers=int(barriers[1]) if barriers else 0,
            )  # fmt: skip
    return found


def assemble_ptx(text: str, processor: str) -> dict[str, PtxasFacts]:
    """Assemble PTX for a GPU, or the nearest that ptxas knows; facts by kernel."""
    ptxas = find_ptxas()
    if ptxas is None:
        msg = "no ptxas was found; install it with `pip install 'kernelcast[cuda]'`"
        raise MissingExtraError(msg)
    # That of CUDA 13 knows none before sm_75.
    known = _PTXAS_SUPPORTED.findall(ask((str(ptxas), "--help")))
    architecture = choose_processor(processor, known)
    command = (str(ptxas), "-arch", architecture, "-v", "code", "-o", "code.cubin")
    return read_ptxas_log(ask(command, text))


_PTX_LOCAL: Final = re.compile(
    r"\.shared\s+(?:\.align\s+\d+\s+)?\.[a-z](\d+)\s+[\w$]+((?:\[\d+\])*)"
)
_PTX_SPACES: Final = {
    "global": "global", "shared": "local", "local": "private", "const": "constant",
    "param": "argument",
}  # fmt: skip
_PTX_KINDS: Final = {
    "bar": "barrier", "barrier": "barrier", "membar": "fence", "fence": "fence", "bra": "branch",
    "brx": "branch", "ret": "branch", "exit": "branch", "trap": "branch", "call": "call",
    "mov": "move", "cvta": "move", "cvt": "convert", "shfl": "shuffle", "vote": "shuffle",
    "match": "shuffle", "redux": "shuffle", "activemask": "shuffle", "tex": "image",
    "suld": "image", "sust": "image", "mma": "matrix", "wmma": "matrix", "ldmatrix": "matrix",
}  # fmt: skip
_PTX_SPECIAL: Final = frozenset({"div", "sqrt", "rsqrt", "rcp", "sin", "cos", "lg2", "ex2", "tanh"})
_PTX_TYPE: Final = re.compile(r"[a-z]+(\d+)(x2)?")


def _classify_ptx(one: Instruction) -> tuple[str, Access | None]:
    name, *parts = one.parts
    if name in {"ld", "ldu", "st", "atom", "red"}:
        is_own = any(text.startswith("[%SP") for text in one.operands)
        unnamed = "private" if is_own else "generic"
        space = next((_PTX_SPACES[part] for part in parts if part in _PTX_SPACES), unnamed)
        lanes = next((int(part[1:]) for part in parts if part in {"v2", "v4", "v8"}), 1)
        kind = _PTX_TYPE.fullmatch(parts[-1])
        size = int(kind[1]) * (2 if kind[2] else 1) // 8 * lanes if kind else 0
        operation = {"st": "store", "atom": "atomic", "red": "atomic"}.get(name, "load")
        access = Access(operation=operation, address_space=space, size_bytes=size)
        return ("atomic" if operation == "atomic" else "memory"), access
    if name in _PTX_KINDS:
        return _PTX_KINDS[name], None
    types = [part for part in parts if _PTX_TYPE.fullmatch(part) or part == "pred"]
    last = types[-1] if types else ""
    is_float = last.startswith(("f", "bf"))
    if not is_float:
        return ("int" if last else "other"), None
    bits = re.sub(r"[^0-9]", "", last.removesuffix("x2"))
    return ("special" if name in _PTX_SPECIAL else f"fp{bits}"), None


_WIDTHS: Final = {"%r": 1, "%f": 1, "%rs": 1, "%h": 1, "%b": 1, "%rd": 2, "%fd": 2, "%rq": 4}
"""Registers of 32 bits that those of PTX take."""


def estimate_registers(code: Sequence[Instruction | str]) -> int:
    """Estimate registers by the most that live at once: for 90 %, 0.68 to 1.42 of ptxas's."""
    labels = {one: place for place, one in enumerate(code) if isinstance(one, str)}
    loops: list[tuple[int, int]] = []
    lives: dict[str, tuple[int, int]] = {}
    for place, one in enumerate(code):
        if isinstance(one, str):
            continue
        if one.name == "bra" and labels[one.operands[0]] < place:
            loops.append((labels[one.operands[0]], place))
        for name in (*one.written, *one.read):
            lives[name] = lives.get(name, (place,))[0], place
    changes = [0] * len(code)
    for name, (start, end) in lives.items():
        for first, last in sorted(loops):
            if start < first <= end <= last:
                end = last
        width = _WIDTHS.get(name.rstrip("0123456789"), 0)
        changes[start] += width
        changes[end] -= width
    most = max(itertools.accumulate(changes), default=0)
    return min(max(round(0.55 * most + 11), 8), 255)


_AMD_INSTRUCTION: Final = re.compile(r"^\t([a-z]\w+)", re.MULTILINE)
# LibYAML takes 1 ms where Python takes 10.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_AMD_METADATA: Final = re.compile(r"^---\n(.*?)^\.\.\.", re.MULTILINE | re.DOTALL)
_AMD_SIZE: Final = re.compile(r"(?:dword|[bu])(?:x(\d+)|(\d+))?")
_AMD_SPACES: Final = {
    "global": "global", "buffer": "global", "flat": "generic", "scratch": "private",
    "ds": "local", "s": "constant",
}  # fmt: skip
_AMD_SMALL: Final = (("byte", 1), ("i8", 1), ("u8", 1), ("b8", 1), ("short", 2), ("16", 2))
# The first that a name begins with tells its kind.
_AMD_KINDS: Final = tuple((re.compile(pattern), kind) for pattern, kind in (
    (r"(?:global|buffer)_(?:wb|inv|gl)|s_waitcnt", "fence"),
    (r"(?:global|flat|buffer|scratch|ds)_\w*(?:permute|swizzle|nop|append|consume)", "shuffle"),
    (r"(?:global|flat|buffer|scratch|ds)_|s_\w*load", "memory"),
    (r"s_barrier", "barrier"), (r"s_(?:c?branch|endpgm)", "branch"),
    (r"s_(?:swappc|setpc)", "call"), (r"s_(?:nop|delay|code_end)", "other"), (r"s_", "scalar"),
    (r"v_(?:mfma|wmma)", "matrix"),
    (r"image_", "image"), (r"v_cvt", "convert"), (r"v_(?:mov|accvgpr)", "move"),
    (r"v_(?:read(?:first)?|write)lane", "shuffle"),
    (r"v_(?:rcp|rsq|sqrt|sin|cos|exp|log|div_|frexp|ldexp)", "special"),
    (r"v_\w*?_f(16|32|64)", r"fp\1"), (r"v_", "int"), (r"", "other"),
))  # fmt: skip


def _classify_amd(name: str) -> tuple[str, Access | None]:
    kind = next(
        found.expand(kind) for pattern, kind in _AMD_KINDS if (found := pattern.match(name))
    )
    if kind != "memory":
        return kind, None
    family, _, rest = name.partition("_")
    operation = (
        "load" if rest.startswith(("load", "read", "buffer_load"))
        else "store" if rest.startswith(("store", "write")) else "atomic"
    )  # fmt: skip
    small = next((size for word, size in _AMD_SMALL if word in rest), None)
    width = _AMD_SIZE.search(rest.rpartition("_")[2])
    size = small or 4
    if small is None and width:
        size = 4 * int(width[1]) if width[1] else int(width[2]) // 8 if width[2] else 4
    if re.match(r"(?:read|write|load|store)(?:_?2|_2addr)", rest):
        size *= 2
    access = Access(operation=operation, address_space=_AMD_SPACES[family], size_bytes=size)
    return ("atomic" if operation == "atomic" else "memory"), access
