"""Inlines functions and keeps variables in registers, and optimises nothing else."""

import functools
import re
from typing import Any, Final

from kernelcast.records.errors import CompileError

_ATTRIBUTES: Final = re.compile(r"^(attributes #\d+ = \{ )(.*)$", re.MULTILINE)
_REFUSING: Final = re.compile(r"\b(?:alwaysinline|noinline|optnone) ")
# Debug information names the kernels' calling convention otherwise before clang 20.
_DEBUG_CONVENTION: Final = re.compile(r"\bcc: DW_CC_LLVM_OpenCLKernel, ")


def inline_calls(code: str) -> str:
    """Inline all calls of functions that the code defines, and put variables in registers.

    Raises
    ------
    CompileError
        If LLVM's own reader does not take the code: llvmlite is older than the compiler.
    """
    from llvmlite import binding

    marked = _ATTRIBUTES.sub(lambda one: f"{one[1]}alwaysinline {_REFUSING.sub('', one[2])}", code)
    marked = _DEBUG_CONVENTION.sub("", marked)
    context = binding.create_context()
    try:
        module = binding.parse_assembly(marked, context)
    except RuntimeError as error:
        msg = f"llvmlite cannot read what the compiler wrote ({error}); install a newer llvmlite"
        raise CompileError(msg) from error
    with module:
        passes = binding.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.add_sroa_pass()
        passes.run(module, _make_builder())
        return str(module)


@functools.cache
def _make_builder() -> Any:  # noqa: ANN401 - llvmlite has no types
    """Make what runs passes; the machine matters to none of these."""
    from llvmlite import binding

    binding.initialize_native_target()
    machine = binding.Target.from_default_triple().create_target_machine()
    return binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
