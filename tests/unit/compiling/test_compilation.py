import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelcast.compiling import Target, compilation, compile_kernel, compiler
from kernelcast.compiling.compiler import find_compiler
from kernelcast.records.errors import CompileError, InputError, MissingExtraError
from kernelcast.records.kernel import Dialect

KERNEL = "kernel void k(global float *a, local int *b, constant float4 *c, short d) { a[0] = d; }"


def store(text: str, *options: str, dialect: Dialect | None = None) -> str:
    source = f"kernel void k(global int *a) {{ a[0] = {text}; }}"
    compiled = compile_kernel(source, options, Target.parse("ir-O3"), dialect=dialect)
    return next(line for line in compiled.text.splitlines() if " store " in line).split(",")[0]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kernelcast" / "compiled"


@pytest.fixture
def fresh_search(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have compilers searched anew, none named, and again after the test."""
    monkeypatch.delenv(compiler.VARIABLE, raising=False)
    find_compiler.cache_clear()
    yield
    find_compiler.cache_clear()


@pytest.mark.parametrize("target", ["ir", "sm_75", "gfx90a"])
def test_parameters(target: str) -> None:
    """Parameters are told as in the source, with the bytes of values."""
    source = f"typedef struct {{ int n; float4 v; }} s; {KERNEL.replace('short d', 'short d, s e')}"
    (kernel,) = compile_kernel(source, (), Target.parse(target)).kernels
    told = [
        (one.name, one.type_name, one.address_space, one.is_const, one.value_bytes)
        for one in kernel.parameters
    ]
    assert told == [
        ("a", "float*", "global", False, 0),
        ("b", "int*", "local", False, 0),
        ("c", "float4*", "constant", True, 0),
        ("d", "short", "private", False, 2),
        ("e", "s", "private", False, 32),
    ]
    assert kernel.required_local_size == (0, 0, 0)


@pytest.mark.parametrize("target", ["sm_", "sm_9000", "gfx", "", "a b", "--help"])
def test_targets_refused(target: str) -> None:
    with pytest.raises(InputError, match="is no processor"):
        Target.parse(target)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["-DN=7"], "N"),
        (["-D", "N=7"], "N"),
        (["-DA=3 -DB=4"], "A + B"),
        (["-DF(x)=((x) + 1)"], "F(6)"),
        (["-DF(x,y)=x + y"], "F(3, 4)"),
        (["-D'F(x)=x + 1'"], "F(6)"),
        (['-DNAME="7"'], "NAME"),
        (["-DQUOTED='\"abcdef\"'"], "sizeof(QUOTED)"),
        (["-DN", "-UN"], "defined_n"),
        (["-DN"], "N + 6"),
    ],
)
def test_macros(options: list[str], text: str) -> None:
    if text == "defined_n":
        text = "\n#ifdef N\n 1\n#else\n 7\n#endif\n"
    assert store(text, *options).endswith("i32 7")


def test_options_that_mean_nothing() -> None:
    """Options of vendors are left out and named; those of OpenCL C take effect; a quotation mark
    that stays open is an error, as it is for a driver."""
    compiled = compile_kernel(
        "kernel void k(global float *a) { a[0] = a[1] * a[2] + a[3]; }",
        ["-cl-nv-verbose", "-cl-fast-relaxed-math", "-include", "/etc/passwd"],
    )
    assert "option -cl-nv-verbose means nothing here" in compiled.log
    assert "option -include/etc/passwd means nothing here" in compiled.log
    assert "fmul fast" in compiled.text
    with pytest.raises(InputError, match="close every quotation mark"):
        store("1", "-DN='1")


POCL = Dialect.from_device("OpenCL 3.0 PoCL HSTR", "cl_khr_fp64 cl_khr_byte_addressable_store")
INTEL = Dialect.from_device(
    "OpenCL 3.0 (Build 0)",
    "cl_khr_fp16 cl_khr_fp64 cl_intel_required_subgroup_size cl_intel_subgroups",
)
OLD = Dialect.from_device("OpenCL 1.1 X", "cl_khr_fp64", has_images=False, is_little_endian=False)


@pytest.mark.parametrize(
    ("dialect", "options", "condition"),
    [
        (POCL, (), "!defined(cl_khr_fp16) && defined(cl_khr_fp64)"),
        (INTEL, (), "defined(cl_khr_fp16) && defined(cl_intel_required_subgroup_size)"),
        (POCL, (), "!defined(cl_intel_required_subgroup_size)"),
        (POCL, (), "defined(__IMAGE_SUPPORT__) && defined(__ENDIAN_LITTLE__)"),
        (OLD, (), "!defined(__IMAGE_SUPPORT__) && !defined(__ENDIAN_LITTLE__)"),
        (OLD, (), "!defined(cl_khr_global_int32_base_atomics)"),
        (POCL, (), "__OPENCL_VERSION__ == 300 && __OPENCL_C_VERSION__ == 120"),
        (POCL, ("-cl-std=CL2.0",), "__OPENCL_VERSION__ == 300 && __OPENCL_C_VERSION__ == 200"),
        (POCL, ("-cl-std=CL3.0",), "__OPENCL_VERSION__ == 300 && __OPENCL_C_VERSION__ == 300"),
        (OLD, (), "__OPENCL_VERSION__ == 110 && __OPENCL_C_VERSION__ == 110"),
    ],
)
def test_macros_of_devices(dialect: Dialect, options: tuple[str, ...], condition: str) -> None:
    """A source finds the macros that its device has, and no others; it is read as the version that
    it asks for, else as 1.2 or the device's own."""
    text = f"\n#if {condition}\n 1\n#else\n 0\n#endif\n"
    assert store(text, *options, dialect=dialect).endswith("i32 1")


@pytest.mark.parametrize("language", ["CL1.2", "CL2.0", "CL3.0"])
@pytest.mark.parametrize(
    "body",
    [
        "half s = (half)1; half4 v = (half4)(s); *a = (v * M_PI_H + HALF_MAX).x;",
        "*a = sizeof(int3) + (size_t)1 + (ptrdiff_t)2 + (intptr_t)3 + (uintptr_t)4;",
        "*a = M_PI + DBL_MAX + DBL_EPSILON + HUGE_VAL + LONG_MIN + FLT_MAX + NAN + INFINITY;",
        "*a = CHAR_BIT + SCHAR_MIN + SHRT_MAX + INT_MIN + UINT_MAX + FLT_DIG + FP_ILOGB0;",
        "*a = as_float2((int2)(1, 2)).y + as_uchar4(3u).z + as_size_t(1ul);",
        'printf("%d %f\\n", 1, a[0]); barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);',
        "vstore3(vload3(1, a), 2, a); vstore4(vload4(1, a), 2, a); vstore_half(*a, 1, h);",
        "event_t e = async_work_group_copy(l, a, 4, 0); wait_group_events(1, &e); *a = *l;",
        "*a = read_imagef(i, CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR, (float2)(1, 2)).x;",
        "float b; *a = fract(*a, &b) + sincos(*a, &b) + mix(*a, 2.0f, 3.0f) + native_sin(*a);",
        "*a = select(1.0f, *a, 1) + mul24(1, 2) + rotate(3, 4) + convert_int_sat_rte(*a);",
    ],
)
def test_language(language: str, body: str) -> None:
    """What OpenCL C defines beside functions is there in each of its versions."""
    parameters = "global float *a, local float *l, global half *h, read_only image2d_t i"
    source = f"kernel void k({parameters}) {{ {body} }}"
    assert compile_kernel(source, [f"-cl-std={language}"]).kernels


@pytest.mark.parametrize("pragma", ["", "#pragma unroll\n", "#pragma unroll 4\n"])
def test_loops_stay_as_written(pragma: str) -> None:
    """LLVM IR as written keeps its loops, also those that a pragma asks to unroll."""
    source = f"kernel void k(global float *a) {{\n{pragma}for (int i = 0; i < 8; ++i) a[i] *= 2; }}"
    assert compile_kernel(source).text.count("fmul float") == 1


@pytest.mark.parametrize("target", ["sm_75", "gfx90a"])
@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("a[0] = read_imagef(i, s, (int2)(1, 2));", ["read_imagef"]),
        ("a[0] = read_imagef(i, S, (int2)(1, 2));", ["read_imagef", "sampler_t"]),
        ("a[0].x = get_image_width(i);", ["get_image_width"]),
        ('printf("%f", a[0].x);', ["printf"]),
    ],
)
def test_missing_builtins(statement: str, missing: list[str], target: str) -> None:
    """A built-in function that no library has is named, and refused where code is to run."""
    parameters = "global float4 *a, read_only image2d_t i, sampler_t s"
    source = f"constant sampler_t S = 16; kernel void k({parameters}) {{ {statement} }}"
    compiled = compile_kernel(source, (), Target.parse(target))
    assert [*compiled.missing] == missing
    with pytest.raises(CompileError, match=f"{', '.join(missing)}; images, samplers, pipes"):
        compiled.require_builtins()


def test_code_is_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled is not compiled again, unless a header has changed, the entry is cut or
    nothing can be kept."""
    folder = own_cache.parent
    folder.mkdir(parents=True)
    (folder / "n.h").write_text("#define N 3\n")
    source = '#include "n.h"\nkernel void k(global int *a) { a[0] = N; }'
    first = compile_kernel(source, include_folders=[folder])
    with monkeypatch.context() as patch:
        patch.setattr(compilation._Job, "run", None)
        assert compile_kernel(source, include_folders=[folder]) == first
    (folder / "n.h").write_text("#define N 4\n")
    assert "store i32 4" in compile_kernel(source, include_folders=[folder]).text
    for entry in own_cache.glob("*.json"):
        entry.write_bytes(entry.read_bytes()[:50])
    assert "store i32 4" in compile_kernel(source, include_folders=[folder]).text
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert "store i32 4" in compile_kernel(source, include_folders=[folder]).text


def write_compiler(path: Path, version: str, otherwise: str) -> str:
    """Write a program that says a version, and does something else for all other arguments."""
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "clang version {version}"; exit; fi\n'
        f"{otherwise}\n"
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.usefixtures("fresh_search", "own_cache")
def test_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        compiler.VARIABLE, write_compiler(tmp_path / "cc", "18.1.0", "exec sleep 99")
    )
    with pytest.raises(CompileError, match=r"did not end within 0\.2 s"):
        compile_kernel(KERNEL, limit_s=0.2)


@pytest.mark.usefixtures("fresh_search")
def test_newest_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest clang is taken: GPUs of today need more than a distribution's oldest; one that the
    user names is taken or refused, never replaced."""
    write_compiler(tmp_path / "clang", "15.0.6", "exit 1")
    write_compiler(tmp_path / "clang-99", "99.0.0", "exit 1")
    newest = write_compiler(tmp_path / "clang-38", "38.1.0", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find_compiler().command == (newest,)
    find_compiler.cache_clear()
    monkeypatch.setenv(compiler.VARIABLE, write_compiler(tmp_path / "cc", "14.0.6", "exit 1"))
    with pytest.raises(InputError, match="is no clang of version 15 or later"):
        find_compiler()


@pytest.mark.usefixtures("fresh_search", "own_cache")
def test_what_was_compiled_needs_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers what was compiled before; for anything else the error says what to install."""
    target = Target.parse("sm_90")
    compiled = compile_kernel(KERNEL, (), target)
    find_compiler.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr(compilation, "find_libdevice", lambda: None)
    assert compile_kernel(KERNEL, (), target) == compiled
    with pytest.raises(MissingExtraError, match=r"pip install 'kernelcast\[compile\]'"):
        compile_kernel(KERNEL, ("-DOTHER",), target)


def test_a_gpu_that_the_compiler_does_not_know_gets_code_of_an_older_one() -> None:
    """Makes PTX for the newest GPU that is known, which later ones run, and says so."""
    compiled = compile_kernel(KERNEL, (), Target.parse("sm_199"))
    (made_for,) = re.findall(r"^\.target (sm_\d+)", compiled.text, re.MULTILINE)
    assert 86 <= int(made_for[3:]) < 199
    assert f"does not know sm_199; this is {made_for}'s" in compiled.log


STORE = "\nkernel void k(global int *a) { a[0] = 1; }\n"
SECRET = "hidden_word"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that may be read, a secret beside it, and a link that leads to the secret."""
    (tmp_path / "secret.h").write_text(f"int {SECRET};\n")
    shown = tmp_path / "shown"
    (shown / "below").mkdir(parents=True)
    (shown / "size.h").write_text('#include "below/deep.h"\n')
    (shown / "below" / "deep.h").write_text("#define SIZE 7\n")
    (shown / "link.h").symlink_to("../secret.h")
    (shown / "away").symlink_to("..", target_is_directory=True)
    return shown


@pytest.mark.parametrize(
    "escape",
    [
        '#include "{secret}"',
        "#include <{secret}>",
        '#include "../secret.h"',
        '#include "below/../../secret.h"',
        '#include "link.h"',
        '#include "away/secret.h"',
        '#define FILE "{secret}"\n#include FILE',
        '%:include "{secret}"',
        '??=include "{secret}"',
        '#inc\\\nlude "{secret}"',
        '#import "{secret}"',
        '#include_next "{secret}"',
        '#embed "{secret}"',
        '_Pragma("GCC dependency \\"{secret}\\"")',
        '#if __has_include("{secret}") || __has_include("../secret.h")\n#else\n#error no\n#endif',
    ],
)
@pytest.mark.parametrize("is_given", [True, False])
def test_no_way_out(escape: str, is_given: bool, folder: Path) -> None:
    """No include, in whatever spelling, reads a file outside the folders, nor tells of it."""
    secret = folder.parent / "secret.h"
    folders = [folder] if is_given else []
    with pytest.raises(CompileError) as raised:
        compile_kernel(escape.format(secret=secret) + STORE, include_folders=folders)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("target", ["x86", "gfx90a", "sm_75"])
@pytest.mark.parametrize("directive", [".incbin", ".include"])
def test_assembly_reads_no_file(directive: str, target: str, folder: Path) -> None:
    """Inline assembly is copied, not assembled."""
    secret = folder.parent / "secret.h"
    line = f'__asm__ volatile("{directive} \\"{secret}\\"");'
    source = f"kernel void k(global int *a) {{ {line} a[0] = 1; }}"
    assert SECRET not in compile_kernel(source, (), Target.parse(target)).text


@pytest.mark.parametrize(
    ("place", "option", "said"),
    [
        ("", "-I/etc", "leads out of the include folders"),
        ("", "-I ..", "leads out of the include folders"),
        ("", "-Iaway", "leads out of the include folders"),
        ("", "-Ibelow/../..", "leads out of the include folders"),
        ("/", "", "no such folder"),
        ("/none/such", "", "no such folder"),
    ],
)
def test_folders_refused(place: str, option: str, said: str, folder: Path) -> None:
    """A -I that leaves the folders, also over a link, what is none, and all of the file system."""
    with pytest.raises(InputError, match=said):
        compile_kernel(STORE, [option], include_folders=[folder / place])


@pytest.mark.parametrize(
    ("options", "name"), [((), "size.h"), (("-I.",), "size.h"), (("-Ibelow",), "deep.h")]
)
def test_files_within(options: tuple[str, ...], name: str, folder: Path) -> None:
    """Files of the folders are included, and what they include beside them."""
    source = f'#include "{name}"\nkernel void k(global int *a) {{ a[0] = SIZE; }}'
    compiled = compile_kernel(source, options, include_folders=[folder])
    assert "store i32 7" in compiled.text
