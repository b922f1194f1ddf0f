"""Counting copies: OpenCL C that a compiler takes, with the counters and sites of the facts."""

import re

import pytest

from kernelcast.compiling import compile_kernel
from kernelcast.features.analysis import read_facts
from kernelcast.features.counting_copy import write_counting_copy
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.software_counters import InstrumentedKernel
from support.kernel_facts import facts_of


def copy_of(source: str, *options: str) -> InstrumentedKernel:
    """Write the counting copy of the kernel `k` of a source, and check that it compiles."""
    kernel = Kernel(name="k", source=source, build_options=options)
    copy = write_counting_copy(kernel)
    assert copy.counter_count == len(read_facts(kernel).reaches)
    [compiled] = compile_kernel(copy.header + copy.kernel.source, options).kernels
    assert len(compiled.parameters) == len(read_facts(kernel).parameters) + 3
    return copy


@pytest.mark.parametrize(
    "body",
    [
        "float4 v = f[i].wzyx * 2.5f; f[i].xz = v.xy; f[i] = v > (float4)(1) ? v : -v;",
        "int3 t = convert_int3_sat(f[i].xyz); b[i] = t.x % t.y; char4 c = convert_char4(t.xxyz);"
        "b[i] += (uchar)c.s2 + (c.s1 < 0);",
        "double d = exp((double)n) / 3; b[i] = isnan(d) ? (int)d : ilogb((float)d);",
        "float x; b[i] = (int)sincos(1.5f * n, &x); f[i] = vload4(i, (global float *)f) * x;",
        "local float tile[64]; tile[i] = n; barrier(CLK_LOCAL_MEM_FENCE); b[i] = tile[63 - i];",
        "int own[5] = {1, 2, 3, 4, 5}; own[i] = n; b[i] = own[n]; ulong u = mul_hi(7ul, (ulong)n);"
        "b[i] += rotate((uint)u, 3u);",
        "b[i] = s.place[n & 1] + (int)s.weight; struct S t = s; t.place[0] = n; h[i] = t;",
        "b[i] = select(n, i, n > 3) + as_int(1e30f) + max(-n, i) + (int)clamp(0.f, -1.f, 1.f);",
        "event_t e = async_work_group_copy(l, b, 8, 0); wait_group_events(1, &e); b[i] = l[n];",
        "write_imagef(out, (int2)(i, n), read_imagef(in, in_place, (int2)(n, i)));",
        "if (n) for (int i = 0; i < n; i++) table[i & 3] == 7 ? atomic_add(&b[i], -1) : 0;",
        "while (n--) if (b[n]) break; else continue; b[0] = n > 2 ? b[1] : b[2];",
        "for (int i = 0, j = n; i < j; i++, j--) { int t = b[i]; b[i] = b[j]; b[j] = t; }",
    ],
)
def test_values_of_all_types_compile(body: str) -> None:
    """Vectors, structures, images, tables, atomics, conversions and functions keep their types."""
    copy_of(
        "struct S { int place[2]; float weight; }; constant int table[4] = {1, 2, 3, 7};\n"
        "constant sampler_t in_place = CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;\n"
        "kernel __attribute__((reqd_work_group_size(64, 1, 1))) void k(global float4 *f,"
        " global int *b, local int *l, int n, struct S s, global struct S *h,"
        " read_only image2d_t in, write_only image2d_t out)"
        f" {{ int i = get_global_id(0); {body} }}",
    )


def test_each_access_writes_its_address_down() -> None:
    """A note for each load, store and atomic, with the facts' site, relative to its buffer."""
    source = (
        "kernel void k(global int *a, global int *b, local int *s) {\n"
        "    s[a[0]] += b[1]; atomic_add(&b[2], 3); int4 v = vload4(1, a); b[v.x] = 0;\n}\n"
    )
    copy = copy_of(source)
    accesses = facts_of(source).accesses
    places = [(str(one.site), str("abs".index(one.buffer or ""))) for one in accesses]
    noted = re.findall(r"kc_capacity, (\d+), .* - \(ulong\)kc_p([012])\);", copy.kernel.source)
    assert sorted(noted) == sorted(places)


def test_a_source_with_errors_is_refused() -> None:
    """Says what the compiler complains about; a half-understood kernel would count wrongly."""
    kernel = Kernel(name="k", source="kernel void k(global int *a) { a[0] = missing(); }")
    with pytest.raises(InputError, match="cannot be counted; error in the source"):
        write_counting_copy(kernel)
