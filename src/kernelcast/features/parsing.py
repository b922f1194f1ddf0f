"""Parses OpenCL C with libclang; the declarations its wheel lacks come from a header of ours."""

from clang import cindex

from kernelcast.records.kernel import Kernel

_MAIN_FILE = "/kernelcast-virtual/kernel.cl"
_HEADER_FILE = "/kernelcast-virtual/types.h"
_SCALARS = {
    "char": "char", "uchar": "unsigned char", "short": "short", "ushort": "unsigned short",
    "int": "int", "uint": "unsigned int", "long": "long", "ulong": "unsigned long",
    "float": "float", "double": "double",
}  # fmt: skip
_LANES = (2, 3, 4, 8, 16)


def _make_header() -> str:
    """Declare OpenCL C's type names, as its specification does (OpenCL C 6.1 and 6.2)."""
    lines = [f"typedef {_SCALARS[name]} {name};" for name in ("uchar", "ushort", "uint", "ulong")]
    lines += [
        f"typedef {name} {name}{lanes} __attribute__((ext_vector_type({lanes})));"
        for name in _SCALARS
        for lanes in _LANES
    ]
    lines += [
        "typedef unsigned long size_t;", "typedef long ptrdiff_t;", "typedef long intptr_t;",
        "typedef unsigned long uintptr_t;", "typedef uint cl_mem_fence_flags;",
        "#define CLK_LOCAL_MEM_FENCE 1", "#define CLK_GLOBAL_MEM_FENCE 2",
        "#define M_PI 3.14159265358979323846", "#define M_PI_F 3.14159274101257f",
        "#define INFINITY (__builtin_inff())", "#define NAN (__builtin_nanf(\"\"))",
        "#define MAXFLOAT 3.402823466e+38f", "#define FLT_MAX 3.402823466e+38f",
        "#define FLT_MIN 1.175494351e-38f", "#define FLT_EPSILON 1.192092896e-07f",
        "#define INT_MAX 2147483647", "#define INT_MIN (-2147483647 - 1)",
        "#define UINT_MAX 4294967295u", "#define UCHAR_MAX 255",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


_HEADER = _make_header()
_OPTIONS = (
    "-x", "cl", "-target", "spir64-unknown-unknown",
    "-Xclang", "-fdeclare-opencl-builtins", "-Xclang", "-cl-ext=+cl_khr_fp64,+cl_khr_fp16",
    "-cl-no-stdinc", "-include", _HEADER_FILE, "-fno-spell-checking",
)  # fmt: skip
# Version 3.0 declares all builtins, version 2.0 has pointers without address space.
_LANGUAGES = ("-cl-std=CL3.0", "-cl-std=CL2.0")
# Options of OpenCL compilers that clang's driver does not know in this place are left out.
_KEPT_OPTIONS = ("-D", "-I", "-U")


def parse_kernel(kernel: Kernel) -> cindex.TranslationUnit | None:
    """Parse a kernel's source.

    Parameters
    ----------
    kernel : Kernel
        The kernel; of its build options those of the preprocessor are used.

    Returns
    -------
    clang.cindex.TranslationUnit or None
        None if libclang cannot make anything of the source, or reports errors in it: facts from
        a half-understood source would be wrong.
    """
    options = [*_OPTIONS, *_preprocessor_options(kernel.build_options)]
    for language in _LANGUAGES:
        unit = _parse(kernel.source, [*options, language])
        if unit is not None:
            return unit
    return None


def find_kernel(unit: cindex.TranslationUnit, name: str) -> cindex.Cursor | None:
    """Find the definition of a function by its name."""
    for cursor in unit.cursor.get_children():
        if (
            cursor.kind == cindex.CursorKind.FUNCTION_DECL
            and cursor.spelling == name
            and cursor.is_definition()
        ):
            return cursor
    return None


def _parse(source: str, options: list[str]) -> cindex.TranslationUnit | None:
    try:
        unit = cindex.Index.create().parse(
            _MAIN_FILE,
            args=options,
            unsaved_files=[(_MAIN_FILE, source), (_HEADER_FILE, _HEADER)],
        )
    except cindex.TranslationUnitLoadError:
        return None
    worst = max((one.severity for one in unit.diagnostics), default=0)
    return unit if worst < cindex.Diagnostic.Error else None


def _preprocessor_options(options: tuple[str, ...]) -> list[str]:
    """Keep -D, -U and -I, written together with their value or apart from it."""
    kept: list[str] = []
    words = iter(" ".join(options).split())
    for word in words:
        if word in _KEPT_OPTIONS:
            kept += [word, next(words, "")]
        elif word.startswith(_KEPT_OPTIONS):
            kept.append(word)
    return kept
