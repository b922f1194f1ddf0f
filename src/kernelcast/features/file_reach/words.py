"""Words by which a compiler is told to open a file, or of the machine it runs on.

Names that begin with two underscores and a small letter belong to compilers; new ones may mean
anything. So OpenCL's own and a few harmless ones pass, and all others are refused.
"""

from typing import Final

DIRECTIVES: Final = frozenset({
    "define", "undef", "if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif",
    "error", "warning", "pragma",
})  # fmt: skip
"""Directives that cannot name a file; of `pragma`, see `PRAGMAS`."""
OF_FILES: Final = frozenset({
    "include", "include_next", "import", "embed", "line", "pragma", "ident",
})  # fmt: skip
"""Directives that can; not even a macro's body may look like one."""
PRAGMAS: Final = frozenset({"OPENCL", "unroll", "nounroll", "STDC", "ivdep"})
"""First words of pragmas that speak of the code alone; so does ``clang loop``."""

_ASSEMBLER = frozenset({"asm", "_asm", "__asm", "__asm__"})
_OF_THE_MACHINE = frozenset({
    "_Pragma", "__FILE__", "__BASE_FILE__", "__FILE_NAME__", "__TIMESTAMP__", "__DATE__",
    "__TIME__", "__INCLUDE_LEVEL__",
})  # fmt: skip
# Code that runs when it is loaded, or that takes a function of the host's.
_LOADED = frozenset({"constructor", "destructor", "ifunc", "weakref"})
PASTED: Final = _ASSEMBLER | _OF_THE_MACHINE
"""Words that may not be pasted together either."""
PASTED_BEGINNINGS: Final = (
    "__has_include", "__has_embed", "__pragma", "__builtin_", "__attribute", "__declspec", "__asm",
)  # fmt: skip
"""Beginnings of words that may not be pasted together."""

_RESERVED = frozenset({
    "__kernel", "__global", "__local", "__constant", "__private", "__generic", "__read_only",
    "__write_only", "__read_write", "__attribute__", "__attribute", "__kernel_exec",
    "__inline", "__inline__", "__restrict", "__restrict__", "__const", "__volatile", "__volatile__",
    "__signed__", "__typeof__", "__alignof__", "__func__",
    "__has_builtin", "__has_feature", "__has_extension", "__has_attribute",
    "__builtin_astype", "__builtin_expect", "__builtin_assume", "__builtin_unreachable",
    "__builtin_shufflevector", "__builtin_convertvector",
    # Told apart by #ifdef only.
    "__clang__", "__clang_major__", "__clang_minor__", "__cplusplus", "__pocl__", "__x86_64__",
    "__i386__", "__aarch64__", "__arm__", "__riscv", "__amdgcn__", "__nvptx__", "__spir__",
    "__spirv__",
})  # fmt: skip
_RESERVED_BEGINNING = "__opencl_"

ATTRIBUTES: Final = frozenset({
    "address_space", "aligned", "always_inline", "cold", "const", "convergent", "deprecated",
    "endian", "ext_vector_type", "fallthrough", "flatten", "hot", "intel_reqd_sub_group_size",
    "max_global_work_dim", "max_work_group_size", "may_alias", "noinline", "nosvm",
    "num_compute_units", "num_simd_work_items", "opencl_unroll_hint", "overloadable", "packed",
    "pure", "qcom_reqd_sub_group_size", "amdgpu_flat_work_group_size", "amdgpu_waves_per_eu",
    "reqd_work_group_size", "uniform_work_group_size", "unused", "vec_type_hint", "vector_size",
    "work_group_size_hint", "xcl_pipeline_loop",
})  # fmt: skip
"""Attributes of types, functions and loops that name neither a symbol nor a section."""


def is_refused(word: str) -> bool:
    """Tell whether a word may not stand in a source.

    Examples
    --------
    >>> is_refused("__asm__"), is_refused("__has_embed"), is_refused("__unheard_of")
    (True, True, True)
    >>> is_refused("__global"), is_refused("__opencl_c_images"), is_refused("_t"), is_refused("N")
    (False, False, False, False)
    """
    if word in PASTED or word in _LOADED:
        return True
    if not (word.startswith("__") and word[2:3].islower()):
        return False
    return word not in _RESERVED and not word.startswith(_RESERVED_BEGINNING)
