"""Makes one function of a kernel and all that it calls, in the text of LLVM IR."""

import re
from collections import Counter
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Final

from kernelcast.compiling.ir import Module, read_module
from kernelcast.records.errors import CompileError

# What begins with a newline is looked for as a word: a line's start is tried at each letter.
_BODY: Final = re.compile(r'\ndefine [^\n]*?@([\w.$]+|"[^"]*")\(.*?\n}', re.DOTALL)
_KERNEL: Final = re.compile(r"\ndefine [^\n@]*@([\w.$]+)\([^\n]*!kernel_arg_addr_space")
_NAME: Final = re.compile(r'@([\w.$]+|"[^"]*")')
# Notes of variables, which LLVM copies with all that it inlines, tell nothing beside signatures.
# Before clang 20, debug information names the kernels' calling convention otherwise.
_UNUSED: Final = re.compile(
    r"\n +(?:#dbg_|call void @llvm\.dbg\.)[^\n]*|cc: DW_CC_LLVM_OpenCLKernel, "
)
_ATTRIBUTES: Final = re.compile(r"(\nattributes #\d+ = \{ )(.*)")
_REFUSING: Final = re.compile(r"\b(?:alwaysinline|noinline|optnone) ")
_PARAMETER: Final = re.compile(r"\n  store (?:volatile )?([^\n]* %([\w.]+), ptr %\2\.addr\b)")
_MOST_INLINED: Final = 200_000
"""Instructions of a kernel. Half as many are read in 5 s and 1 GB; hashing by SHA-512, whose
functions have hundreds of cases, would grow to 1.4 million."""


def drop_uncalled(code: str, kernel: str = "") -> str:
    """Drop functions that neither a kernel nor a variable leads to: of all kernels, or of one."""
    bodies = {match[1]: match[0] for match in _BODY.finditer(code)}
    waiting = [kernel] if kernel else _KERNEL.findall(code)
    waiting += _NAME.findall("".join(re.findall(r"\n@[^\n]*", code)))  # of variables
    kept: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in kept:
            kept.add(name)
            waiting += _NAME.findall(bodies[name])
    return _BODY.sub(lambda one: one[0] if one[1] in kept else "", code)


def keep_in_registers(code: str) -> str:
    """Bring the variables of functions into registers, and have all calls inlined later."""
    marked = _ATTRIBUTES.sub(
        lambda one: f"{one[1]}alwaysinline {_REFUSING.sub('', one[2])}", _UNUSED.sub("", code)
    )
    # While functions are small: LLVM's time for it grows with variables times blocks (12 s for 350
    # inlined functions with loops, 0.5 s so). Parameters stay in memory until calls are gone, or
    # their constants would be folded, operations of the source among them.
    marked = _PARAMETER.sub(r"\n  store volatile \1", marked)
    return _PARAMETER.sub(r"\n  store \1", _run_passes(marked, "sroa"))


def inline_calls(code: str, kernel: str = "") -> str:
    """Inline all calls in what `keep_in_registers` wrote; of one kernel, keep nothing else."""
    marked = _leave_calls(drop_uncalled(code, kernel))
    return _run_passes(marked, "always_inliner", "global_dead_code_eliminate", "sroa")


@lru_cache(maxsize=16)
def read_inlined(code: str, kernel: str) -> Module:
    return read_module(inline_calls(code, kernel))


def _leave_calls(code: str) -> str:
    """Have calls stay where a function would become too long: of what makes it longest."""
    bodies = {match[1]: match[0] for match in _BODY.finditer(code)}
    calls = {
        name: Counter(called for called in _NAME.findall(body)[1:] if called in bodies)
        for name, body in bodies.items()
    }
    try:
        order = [*TopologicalSorter(calls).static_order()]  # callees first
    except CycleError:
        return code  # recursion, which the reader of the code refuses
    totals = sum(calls.values(), Counter[str]())
    lengths: dict[str, int] = {}
    staying: set[str] = set()
    for name in order:
        own = bodies[name].count("\n  ")
        parts = {one: lengths[one] * number for one, number in calls[name].items()}
        for called in sorted(parts, key=parts.__getitem__, reverse=True):
            is_long = own + sum(parts.values()) > _MOST_INLINED
            # What is called once makes nothing longer.
            if called in staying or (is_long and totals[called] > 1):
                staying.add(called)
                del parts[called]
        lengths[name] = own + sum(parts.values())
    names = "|".join(map(re.escape, staying))
    return re.sub(rf"(@(?:{names})\([^\n]*\)) #\d+", r"\1", code) if staying else code


def _run_passes(code: str, *names: str) -> str:
    from llvmlite import binding

    try:
        module = binding.parse_assembly(code, binding.create_context())
    except RuntimeError as error:
        msg = f"llvmlite cannot read what the compiler wrote ({error}); install a newer llvmlite"
        raise CompileError(msg) from error
    with module:
        passes = binding.create_new_module_pass_manager()
        for name in names:
            getattr(passes, f"add_{name}_pass")()
        binding.initialize_native_target()
        # The machine matters to none of these passes.
        machine = binding.Target.from_default_triple().create_target_machine()
        tuning = binding.create_pipeline_tuning_options()
        passes.run(module, binding.create_pass_builder(machine, tuning))
        return str(module)
