import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.features.analysis import analyse
from kernelcast.features.parsing import ParsedSource, list_kernels, parse_kernel, parse_source
from kernelcast.records.dialect import Dialect
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel

LANGUAGES = ("CL1.2", "CL2.0", "CL3.0")
TYPES = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double")


def parse_body(body: str, *options: str, parameters: str = "") -> ParsedSource:
    """Parse a kernel of this body."""
    return parse_source(f"kernel void k({parameters}) {{ {body} }}", options)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "body",
    [
        "half a = (half)1; half4 b = (half4)(a); a += M_PI_H + HALF_MAX;",
        "bool a = true; size_t b = sizeof(int3); ptrdiff_t c = 1; intptr_t d = 2; uintptr_t e = 3;",
        "double a = M_PI + DBL_MAX + DBL_EPSILON + HUGE_VAL; long b = LONG_MIN + LONG_MAX;",
        "float a = M_PI_F + M_SQRT1_2_F + FLT_MAX + MAXFLOAT + HUGE_VALF + NAN + INFINITY;",
        "int a = CHAR_BIT + SCHAR_MIN + SHRT_MAX + INT_MIN; ulong b = UINT_MAX + ULONG_MAX;",
        "int a = FLT_DIG + DBL_MANT_DIG + HALF_MAX_EXP + FP_ILOGB0 + FLT_RADIX;",
        "float a = as_float(1) + as_float2((int2)(1, 2)).y; uchar4 b = as_uchar4(3u);",
        "int a = convert_int_sat_rte(1.5f); uchar4 b = convert_uchar4_sat((float4)(1.0f));",
        "int a = mul24(1, 2) + mad24(1, 2, 3) + bitselect(1, 2, 3) + select(1, 2, 3);",
        "float4 a = (float4)(1.0f); a.s0123 = a.wzyx; a = shuffle(a, (uint4)(1)); a.lo = a.even;",
        "float a = native_sin(1.0f) + half_sqrt(1.0f) + mix(1.0f, 2.0f, 3.0f) + dot(1.0f, 2.0f);",
        "float a, b; a = fract(1.0f, &b) + sincos(1.0f, &b) + modf(1.0f, &b);",
        'printf("%d %f\\n", 1, 2.0f);',
        "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); mem_fence(CLK_GLOBAL_MEM_FENCE);",
        "int a = popcount(1) + clz(2) + vec_step(float3) + get_work_dim();",
        "uint a = amd_bitalign(1u, 2u, 3u); uint2 b = 1; b = amd_bytealign(b, b, b);",
        "ulong a = clock_read_device(); uint2 b = clock_read_hilo_sub_group();",
        "int a = sub_group_shuffle(1, 2u) + intel_sub_group_shuffle(1, 2u);",
        "\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n double a = 1.0;",
        "\n#pragma OPENCL EXTENSION cl_amd_printf : enable\n int a = 1;",
    ],
)  # fmt: skip
def test_knows_builtins_of_every_version(body: str, language: str) -> None:
    """Declares the types, constants and functions that each version of OpenCL C has."""
    parsed = parse_body(body, f"-cl-std={language}")
    assert (parsed.errors, parsed.language) == ((), language)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", TYPES)
def test_knows_vectors(name: str, language: str) -> None:
    """Names every vector type, loads, stores, converts and reinterprets it."""
    body = "".join(
        f"{{ {name}{n} v = vload{n}(0, a); vstore{n}(v, 1, a); v = convert_{name}{n}(v);"
        f" v = as_{name}{n}(v); v += v.s1; }}"
        for n in (2, 3, 4, 8, 16)
    )
    parsed = parse_body(body, f"-cl-std={language}", parameters=f"global {name} *a")
    assert (parsed.errors, parsed.language) == ((), language)


@pytest.mark.parametrize(
    ("parameters", "body"),
    [
        ("global int *a", "atom_add(a, 1); atom_inc(a); atom_cmpxchg(a, 1, 2); atom_xchg(a, 3);"),
        ("local uint *a", "atomic_add(a, 1u); atomic_min(a, 2u); atomic_cmpxchg(a, 1u, 2u);"),
        ("global long *a", "atom_add(a, 1l); atom_max(a, 2l);"),
        ("global float *a", "atomic_xchg(a, 1.0f); prefetch(a, 4);"),
        ("global float *a, local float *b",
         "event_t e = async_work_group_copy(b, a, 4, 0); wait_group_events(1, &e);"
         " e = async_work_group_strided_copy(b, a, 4, 2, e);"),
        ("global half *a", "float4 x = vload_half4(0, a); vstore_half_rte(x.x, 1, a);"
         " x = vloada_half4(0, a); float y = vload_half(2, a);"),
        ("read_only image2d_t a, write_only image2d_t b, sampler_t s",
         "const sampler_t t = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;"
         " int2 p = (int2)(get_image_width(a), get_image_height(a));"
         " write_imagef(b, p, read_imagef(a, t, p) + read_imagef(a, s, (float2)(1)));"
         " int o = get_image_channel_order(a) == CLK_RGBA ? CLK_FLOAT : CLK_UNORM_INT8;"),
        ("read_only image3d_t a, sampler_t s", "uint4 v = read_imageui(a, s, (int4)(1));"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("language", LANGUAGES)
def test_knows_memory_functions(parameters: str, body: str, language: str) -> None:
    """Declares atomics old and new, copies, halves and images in each version."""
    parsed = parse_body(body, f"-cl-std={language}", parameters=parameters)
    assert (parsed.errors, parsed.language) == ((), language)


@pytest.mark.parametrize(
    ("parameters", "body"),
    [
        ("global atomic_int *a",
         "atomic_fetch_add(a, 1); atomic_fetch_add_explicit(a, 1, memory_order_relaxed,"
         " memory_scope_work_group); atomic_store(a, 2); int x = atomic_load(a);"),
        ("global atomic_float *a", "atomic_fetch_add_explicit(a, 1.0f, memory_order_relaxed);"),
        ("", "work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group);"
         " atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel,"
         " memory_scope_device);"),
        ("", "int x = work_group_reduce_add(1) + sub_group_scan_inclusive_max(2)"
         " + work_group_broadcast(3, 0) + get_sub_group_id() + get_global_linear_id();"),
        ("read_write image2d_t a", "write_imagef(a, (int2)(0), read_imagef(a, (int2)(1)));"),
        ("global int *a", "int *p = a; global int *q = to_global(p);"),
        ("read_only pipe int a", "int x; read_pipe(a, &x);"),
        ("", "queue_t q = get_default_queue(); ndrange_t n = ndrange_1D(64);"
         " enqueue_kernel(q, CLK_ENQUEUE_FLAGS_NO_WAIT, n, ^{ });"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_knows_version_2(parameters: str, body: str, language: str) -> None:
    """Declares what OpenCL C 2.0 brought, also in 3.0 where it is optional."""
    parsed = parse_body(body, f"-cl-std={language}", parameters=parameters)
    assert (parsed.errors, parsed.language) == ((), language)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        (["-DN=3"], "3"),
        (["-D", "N=3"], "3"),
        (["-D N=3 -w -cl-mad-enable"], "3"),
        (["\t-DN=3 \n -D  M=2\r"], "3"),
        (["-DN='1 + 2'"], "1 + 2"),
        (['-DN="1 + 2"'], "1 + 2"),
        (['-D "N=1 + 2"'], "1 + 2"),
        (["-DN=9", "-UN", "-DN=3"], "3"),
        (["-DM=1 + 2", "-DN=3"], "3"),
        (["-DN"], "1"),
        (["-D__IMAGINARY__", "-DN=3", "-cl-unknown-option", "-O9", "extra", "-D"], "3"),
    ],
)
def test_reads_macros(options: list[str], value: str) -> None:
    """Understands -D and -U in every form, and leaves unknown options out."""
    source = f"constant char ok[N == {value} ? 1 : -1] = {{0}}; kernel void k() {{}}"
    assert parse_source(source, options).errors == ()


@pytest.mark.parametrize(
    ("option", "macro"),
    [
        ("-cl-fast-relaxed-math", "__FAST_RELAXED_MATH__"),
        ("", "cl_khr_fp64"),
        ("", "__ENDIAN_LITTLE__"),
        ("", "__IMAGE_SUPPORT__"),
        ("", "cl_khr_global_int32_base_atomics"),
        ("", "!defined(cl_intel_subgroups) && !defined(cl_amd_media_ops)"),
        ("", "__OPENCL_VERSION__ >= 120 && __OPENCL_C_VERSION__"),
    ],
)
def test_defines_macros_of_devices(option: str, macro: str) -> None:
    """Defines the macros that a device's compiler defines."""
    assert parse_source(f"#if !({macro})\n#error no\n#endif", [option]).is_clean


def test_single_precision_constants_are_floats() -> None:
    """Takes constants as float where the option says so."""
    source = "constant char ok[sizeof(1.0) == 4 ? 1 : -1] = {0};"
    assert parse_source(source, ["-cl-single-precision-constant"]).is_clean
    assert not parse_source(source).is_clean


def test_takes_version_with_fewest_errors() -> None:
    """Falls back to an older version where a newer one's names are in the way."""
    parsed = parse_body("int pipe = 1; int b = pipe;")
    assert (parsed.errors, parsed.language) == ((), "CL1.2")


def test_takes_pointers_as_private() -> None:
    """Understands a global variable beside a private pointer, which only lean devices of 3.0 do."""
    body = "private uint *p; p = (uint*)&a;"
    parsed = parse_source(f"static const uint t[1] = {{1}}; kernel void k(uint a) {{ {body} }}")
    assert (parsed.errors, parsed.language) == ((), "CL3.0")


def test_prefers_version_of_options() -> None:
    """Tries the version of the options first, and another where it gives fewer errors."""
    for language in ("CL1.0", "CL1.1", "CLC++", "CLC++2021"):
        assert parse_body("int a;", f"-cl-std={language}").language == language
    assert parse_body("int a = work_group_all(1);", "-cl-std=CL1.2").language == "CL3.0"
    assert parse_body("int a;", "-cl-std=CL9.9").language == "CL3.0"


def test_finds_kernels() -> None:
    """Lists definitions of kernels only, however they are spelled."""
    source = """
    #define K __kernel
    K void a() {}
    __attribute__((reqd_work_group_size(8, 1, 1))) kernel void b() {}
    kernel_exec(8, float4) void c() {}
    void kernel d() {}
    kernel void declared();
    void helper() {}
    void my_kernel() {}
    __attribute__((overloadable)) void e() {}
    /* kernel void comment() {} */
    #if 0
    kernel void left_out() {}
    #endif
    DEFINE(f)
    """
    parsed = parse_source(source, ["-DDEFINE(n)=kernel void n##_1() {}"])
    parsed_with_space = parse_source(source, ["'-DDEFINE(n)=kernel void n##_1() {}'"])
    assert not parsed.is_clean
    assert list_kernels(parsed)[:4] == ("a", "b", "c", "d")
    assert list_kernels(parsed_with_space) == ("a", "b", "c", "d", "f_1")


def test_finds_kernels_beside_errors() -> None:
    """Lists the kernels of a source that lacks types, macros and an included file."""
    source = """
    #include "missing.h"
    kernel void a(global T *x, int n) { x[M] = f(n); }
    kernel void b(global float *x) { x[0] = M }
    kernel void a(global T *x) {}
    """
    parsed = parse_source(source, source_name="some.cl")
    assert list_kernels(parsed) == ("a", "b")
    assert parsed.errors[0] == "some.cl:2:14: 'missing.h' file not found"
    assert any("undeclared identifier 'M'" in error for error in parsed.errors)


def test_keeps_twenty_errors() -> None:
    """Holds the first twenty errors only, and the kernels after them."""
    parsed = parse_source("kernel void a() { " + "x;\n" * 50 + "} kernel void b() {}")
    assert len(parsed.errors) == 20
    assert parsed.errors[1] == "<source>:2:1: use of undeclared identifier 'x'"
    assert list_kernels(parsed) == ("a", "b")


def test_includes_from_folders(tmp_path: Path) -> None:
    """Finds included files in the folders of -I and in those of the call, and names them."""
    (tmp_path / "n.h").write_text("#define N 1\nint x = y;\n")
    source = '#include "n.h"\nkernel void k(global int *a) { a[N] = 1; }'
    for parsed in (
        parse_source(source, [f"-I{tmp_path}"]),
        parse_source(source, ["-I", str(tmp_path)]),
    ):
        assert [error.split("/")[-1] for error in parsed.errors] == [
            "n.h:2:9: use of undeclared identifier 'y'"
        ]


@pytest.mark.parametrize("sign", ["\0", "\ud800", b"\xff".decode("utf-8", "surrogateescape")])
def test_refuses_what_is_not_text(sign: str) -> None:
    """Says where a source or an option holds NUL or was not UTF-8."""
    with pytest.raises(InputError, match=r"^a\.cl:2:3: the source holds U\+"):
        parse_source(f"//\n//{sign}", source_name="a.cl")
    with pytest.raises(InputError, match="the build option holds"):
        parse_source("", [f"-DN={sign}"])


def test_refuses_open_quotation() -> None:
    """Says that a quotation mark of the options is not closed."""
    with pytest.raises(InputError, match="close every quotation mark"):
        parse_source("", ["-DN='1"])


@pytest.mark.parametrize(
    "source",
    ["", "\n", "\ufeffkernel void k() {}", "é ∀ 😀", "}}}}((((", "#error no", "\\", '"', "/*"],
)
def test_answers_on_any_text(source: str) -> None:
    """Parses whatever text it is given."""
    assert parse_source(source).source == source


def test_kernel_needs_clean_source() -> None:
    """Gives the tree of a kernel only where the source is understood."""
    assert parse_kernel(Kernel(name="k", source="kernel void k() {}")) is not None
    assert parse_kernel(Kernel(name="k", source="kernel void k() { x; }")) is None
    assert parse_kernel(Kernel(name="k", source="kernel void k() {} \0")) is None


def test_survives_deep_nesting() -> None:
    """Parses deeply nested text in a process that lives on."""
    code = (
        "from kernelcast.features.parsing import parse_source\n"
        "from kernelcast.records.errors import CompileError\n"
        "for source in ('kernel void k() { int a = ' + '(' * 9999 + '1' + ')' * 9999 + '; }',\n"
        "               'kernel void k(int b) { int a = b' + '+ b' * 9999 + '; }'):\n"
        "    try:\n"
        "        parse_source(source)\n"
        "    except CompileError:\n"
        "        pass\n"
        "print('alive')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "alive\n"


@pytest.mark.parametrize(
    ("macro", "is_defined"),
    [
        ("cl_khr_fp16", False),
        ("cl_intel_required_subgroup_size", True),
        ("cl_khr_fp64", True),
        ("__OPENCL_VERSION__ == 210", True),
        ("__IMAGE_SUPPORT__", False),
    ],
)
def test_a_device_decides_which_branch_is_read(macro: str, is_defined: bool) -> None:
    """Reads what the device's compiler would, and nothing that it would skip."""
    dialect = Dialect.from_device(
        "OpenCL 2.1 X", "cl_khr_fp64 cl_intel_required_subgroup_size", has_images=False
    )
    condition = macro if "=" in macro else f"defined({macro})"
    source = f"kernel void k(global int *a) {{\n#if {condition}\n a[0] = 1;\n#endif\n}}"
    kernel = Kernel(name="k", source=source, dialect=dialect)
    assert bool(analyse(kernel).facts.accesses) is is_defined
    assert replace(kernel, dialect=None).digest == kernel.digest


def test_a_source_that_a_device_refuses_is_read_as_others_read_it() -> None:
    """Reads double precision on a device that reports none: whoever asks knows better."""
    source = "kernel void k(global double *a) { a[0] = 1; }"
    single = Dialect.from_device("OpenCL 3.0 X", "")
    assert parse_source(source, dialect=single).is_clean
