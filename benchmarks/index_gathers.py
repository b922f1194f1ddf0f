"""Which indices Intel's compiler gathers: gathers and scatters in the code of small kernels.

``python benchmarks/index_gathers.py`` builds a kernel for each form of an index, reads its machine
code with ``objdump`` (a minute), and sets beside it what the source analysis says of the same
kernel. Nothing runs. Writes ``results/index_gathers.md``.
"""

import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyopencl as cl

from kernelcast.features.analysis import analyse
from kernelcast.records.kernel import Kernel
from kernelcast.sampling.discovery import find_devices

RESULTS = Path(__file__).resolve().parent / "results"
_SIGNATURE = (
    "kernel void k(global const float *restrict a, global float *restrict o, local float *t,"
    " const int w, const int n, const uint u)"
)
_IDS = "const int x = get_global_id(0), y = get_global_id(1), l = get_local_id(0);"
_UNSIGNED = "const uint v = get_global_id(0);"
_SUM = "for (int k = 0; k < n; ++k) s += "
FORMS = (
    "o[get_global_id(0)] = a[get_global_id(0)];",
    "o[get_global_id(0) + 1] = a[get_global_id(0)];",
    "o[x] = a[x];",
    "o[x + 1] = a[x + 1];",
    "o[x + w] = a[x + w];",
    "o[y * w + x] = a[y * w + x];",
    "o[y * w + x] = a[y * w + x - 1] + a[(y + 1) * w + x];",
    "o[(size_t)y * w + x] = a[(size_t)y * w + x];",
    "const size_t i = (size_t)y * w + x; o[i] = a[i];",
    "const size_t i = (size_t)y * w + x; if (x == 0) o[i] = a[i];",
    "const size_t i = (size_t)y * w + x; if (x >= 2) o[i] = a[i];",
    "const int i = y * w + x; if (x < w) o[i] = a[i - w];",
    "const int i = get_global_id(0) + w * get_global_id(1); o[i] = a[i];",
    "const int i = (int)get_global_id(0) + w * (int)get_global_id(1); o[i] = a[i];",
    "const int i = get_group_id(0) * 64 + get_local_id(0); o[i] = a[i];",
    "const int s = get_global_size(0); o[y * s + x] = a[y * s + x];",
    "o[x + w] = a[get_global_id(0)];",
    "o[v] = a[v];",
    "o[v + u] = a[v + u];",
    "for (int i = l; i < n; i += get_local_size(0)) o[w + i] = a[i];",
    "for (uint i = v; i < u; i += get_global_size(0)) o[i] = a[i];",
    "for (size_t i = get_global_id(0); i < u; i += get_global_size(0)) o[i] = a[i];",
    f"float s = 0; {_SUM}a[k * w + x]; o[y * w + x] = s;",
    f"float s = 0; {_SUM}a[(size_t)k * w + get_global_id(0)]; o[get_global_id(0)] = s;",
    "float s = 0; for (int k = 0; k < 3; ++k) s += a[k * w + x]; o[y * w + x] = s;",
    "t[l] = a[x + w]; barrier(1); o[x + w] = t[l];",
    "t[l + w] = a[x + w]; barrier(1); o[x + w] = t[l + w];",
    "local float b[8][66]; b[y][l] = a[x + w]; barrier(1); o[x + w] = b[y][l + 1];",
    "global const float *row = a + (size_t)y * w; o[y * w + x] = row[x];",
)


def main() -> None:
    """Build, read and write."""
    find_devices()  # makes the runtimes known that are installed beside
    device = next(
        one for platform in cl.get_platforms() if "Intel" in platform.name
        for one in platform.get_devices(cl.device_type.CPU)
    )  # fmt: skip
    context = cl.Context([device])
    lines = ["# Indices that Intel's compiler gathers", "", *(__doc__ or "").splitlines()[2:], "",
             "| kernel | gathers, scatters | accesses taken for gathered |",
             "|---|---:|---:|"]  # fmt: skip
    for form in FORMS:
        ids = _UNSIGNED if re.search(r"\bv\b", form) else _IDS
        source = f"{_SIGNATURE} {{ {ids} {form} }}"
        program = cl.Program(context, source).build()
        code = disassemble(program.get_info(cl.program_info.BINARIES)[0])
        counts = f"{len(re.findall('gather', code))}, {len(re.findall('scatter', code))}"
        accesses = analyse(Kernel(name="k", source=source)).facts.accesses
        told = sum(one.is_narrowed for one in accesses)
        lines.append(f"| `{form}` | {counts} | {told} of {len(accesses)} |")
    (RESULTS / "index_gathers.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


def disassemble(binary: bytes) -> str:
    """Disassemble the code in a binary of Intel's runtime, an object file within an object file."""
    code = dict(list_sections(binary))[b".ocl.obj"]
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(code)
        file.flush()
        return subprocess.run(
            ["objdump", "-d", "--no-show-raw-insn", file.name],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip


def list_sections(binary: bytes) -> Iterator[tuple[bytes, bytes]]:
    """List names and contents of an object file's sections; the last one holds the names."""
    start, size, count = (struct.unpack_from(kind, binary, at)[0]
                          for kind, at in (("<Q", 0x28), ("<H", 0x3A), ("<H", 0x3C)))  # fmt: skip
    sections = [struct.unpack_from("<IIQQQQ", binary, start + size * one) for one in range(count)]
    names = sections[-1][4]
    for name, _, _, _, offset, length in sections:
        end = binary.index(b"\0", names + name)
        yield binary[names + name : end], binary[offset : offset + length]


if __name__ == "__main__":
    main()
