"""Compiles OpenCL C with clang to LLVM IR, PTX, AMD or x86 assembly, and reads facts of the code.

The compiler is clang 15 or later: the one that ``KERNELCAST_CLANG`` names, else the newest of
those on the path and of the ``ziglang`` wheel (extra ``compile``). It is looked for when a kernel
is compiled for the first time; importing this room starts nothing. A compiler reads no file but
those of the folders that were given.
"""

from kernelcast.compiling.compilation import Compiled as Compiled
from kernelcast.compiling.compilation import compile_kernel as compile_kernel
from kernelcast.compiling.compiler import find_ptxas as find_ptxas
from kernelcast.compiling.facts import assemble_ptx as assemble_ptx
from kernelcast.compiling.facts import read_facts as read_facts
from kernelcast.compiling.inlining import inline_calls as inline_calls
from kernelcast.compiling.signatures import CompiledKernel as CompiledKernel
from kernelcast.compiling.targets import CodeFormat as CodeFormat
from kernelcast.compiling.targets import Target as Target
