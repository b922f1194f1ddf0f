"""Compiles OpenCL C with clang to LLVM IR, PTX, AMD or x86 assembly, and reads facts of the code.

The compiler is clang 15 or later: the one that ``KERNELCAST_CLANG`` names, else the newest of
those on the path and of the ``ziglang`` wheel (extra ``compile``). It is looked for when a kernel
is compiled for the first time; importing this room starts nothing. A compiler reads no file but
those of the folders that were given.
"""

from kernelcast.compiling.compilation import Compiled, compile_kernel
from kernelcast.compiling.compiler import Compiler, find_compiler
from kernelcast.compiling.facts import (
    Access,
    CodeFacts,
    PtxasFacts,
    assemble_ptx,
    find_ptxas,
    read_facts,
)
from kernelcast.compiling.libraries import BASE_HEADER
from kernelcast.compiling.signatures import Argument, CompiledKernel
from kernelcast.compiling.targets import CodeFormat, Target
from kernelcast.records.dialect import Dialect

__all__ = [
    "BASE_HEADER",
    "Access",
    "Argument",
    "CodeFacts",
    "CodeFormat",
    "Compiled",
    "CompiledKernel",
    "Compiler",
    "Dialect",
    "PtxasFacts",
    "Target",
    "assemble_ptx",
    "compile_kernel",
    "find_compiler",
    "find_ptxas",
    "read_facts",
]
