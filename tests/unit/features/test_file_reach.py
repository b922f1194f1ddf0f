"""No way is left to a word that opens a file, however macros hide it."""

from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
import yaml

from kernelcast.compiling import compile_kernel
from kernelcast.features.file_reach import check_reach
from kernelcast.records.errors import CompileError, InputError

_ROOT = Path(__file__).parents[3]
_JOIN = "#define JOIN(a, b) a##b\n"


@pytest.mark.parametrize(
    ("source", "definitions"),
    [
        ('A(".incbin \\"/etc/passwd\\"");', ("A=__asm__",)),
        ("#if H(</etc/passwd>)\n#endif", ("H=__has_include",)),
        ("#ifdef __POCL__\n__asm__();\n#endif", ()),
        ("#if 0\n#else\n#if __has_embed(<x>)\n#endif\n#endif", ()),
        (_JOIN + 'JOIN(as, m)("");', ()),
        (_JOIN + "JOIN(a, JOIN(s, m))", ()),
        (_JOIN + "#if JOIN(__has, _include)(<x>)\n#endif", ()),
        (_JOIN + "#define P JOIN(_, Pragma)\nP(\"x\")", ()),
        (_JOIN + "JOIN(__builtin, _FILE)()", ()),
        (_JOIN + "J(as, m)", ("J=JOIN",)),
        ("#define C(x) x##m\nC(as)", ()),
        ("#define C as##m\nC", ()),
        ("#define C (a) s##m a\n#define D(x, y) x##y", ()),
        ("#define C/**/(a) a\n#define D(x, y) x##y\nint s, m;", ()),
        ("#define C(a) a\n#define D(x, y) x##y\nint a, s, m;", ()),
        ("#define C(...) as##__VA_ARGS__\nC(m)", ()),
        ("#define C(a, b, c) a/**/##/**/b ## c\nC(__, as, m__)", ()),
        ("#define C(...) __VA_OPT__(as)##m\nC(1)", ()),
        ("#define C(a) a##_has_include\nC(_)", ()),
        ("#define B __##builtin_##printf\nB", ()),
        ("as\\\nm", ()),
        ("as\\u006d", ()),
        ("as\uff4d", ()),
        ("int \u00b2__asm__;", ()),
        ("#define C(a, b) a%:%:b\nC(as, m)", ()),
        ("#define C(a, b) a??=??=b", ()),
        ("C(as, m)", ("C=a%:%:b",)),
        ("/* */ asm /* */", ()),
        ('R"(")" asm(") R")";', ()),
        ("int a = 1'0 /* '1; */ + 2; asm();", ()),
        ("#if 0\ndon't /* this\n#endif\nasm(); // */", ()),
        ('#if 0\n" /* \n#endif\nasm(); /* "*/', ()),
        ("// a \\ \nasm();", ()),
        ("// a ??/\nasm();", ()),
        ("/* a", ()),
        ("int a;", ("A=/*",)),
        ("int a;", ("A=//",)),
        ("__FILE__", ()),
        ("__declspec(dllimport)", ()),
        ("__pragma(comment(lib, 1))", ()),
        ("__attribute__((constructor)) void f(void);", ()),
        ('__attribute__((__alias__("system"))) int a;', ()),
        ("#define T(x) __attribute__((x))\nT(constructor)", ()),
        ("#define T __attribute__\nT((alias))", ()),
        ("#define aligned alias\n__attribute__((aligned)) int a;", ()),
        ("__attribute__((aligned)) int a;", ("aligned=alias",)),
        ('#define E 8), section(".x"\n__attribute__((aligned(E))) int a;', ()),
        ("__attribute__((aligned(E))) int a;", ('E=8), section(".x"',)),
        ("#define E 8), alias(\n__attribute__((aligned(E))) __attribute__((constructor));", ()),
        ("[[gnu::constructor]] void f();", ()),
        ("#pragma comment(lib, 1)", ()),
        ("#define J(a, b) a##b\n#define P pragma\nJ(J(_, _), P)(comment(lib, 1))", ()),
        ("#pragma GCC system_header", ()),
        ("# 33 \"x.cl\"", ()),
        ("int a; # include <x>", ()),
        ("#include_next <x>", ()),
        ("#__include_macros <x>", ()),
    ],
)  # fmt: skip
def test_hidden_words_are_found(source: str, definitions: tuple[str, ...]) -> None:
    """In branches that are not taken, in macros, options, odd spellings and by pasting."""
    with pytest.raises(InputError):
        check_reach(source, definitions)


@pytest.mark.parametrize(
    ("source", "definitions"),
    [
        ("// asm and __has_include, as m\n#define SUM(T) sum_##T\nint a, s, m, as;", ()),
        ("#define LOAD(q) f##q\n#define NAME(a, b) a##_##b\nfloat f1, m, s;", ()),
        ("#error don't use __FILE__ here", ()),
        ("#if 0\nthis isn't C\n#endif", ()),
        ("char c = '\"'; char d = '\\''; constant char *s = \"/* asm\";", ()),
        ("__attribute__((reqd_work_group_size(N, 1, 1), __aligned__(8)))\nkernel void k() {}", ()),
        ("typedef float f4 __attribute__((ext_vector_type(4)));", ("N=4", "T=float", "E")),
        ("#define OPEN if (1) (\n__attribute__((aligned(8))) int a;", ()),
        ("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#pragma unroll\n#pragma unroll 4", ()),
        ("#pragma clang loop unroll(enable)\n", ()),
        ("#define J(a, b) a##b\n#define K(a, b) J(a, J(_, b))\n#pragma unroll\nint K(x, _);", ()),
        ("#if __has_builtin(__builtin_expect) && __OPENCL_C_VERSION__ >= 120\n#endif\n#\n", ()),
        ("#define A(x) #x\n#define B(x, \\\n  y) x + y\nint u = a[b[0]];", ()),
        ("int naive; // naïve", ()),
        ("#define\nint a;", ()),
    ],
)
def test_usual_texts_pass(source: str, definitions: tuple[str, ...]) -> None:
    check_reach(source, definitions)


_KERNELS = {
    str(path.relative_to(_ROOT)): path.read_text()
    for folder in ("src/kernelcast/training_data", "examples", "benchmarks", "tests/integration")
    for path in sorted((_ROOT / folder).rglob("*.cl"))
} | {
    path.name: yaml.safe_load(path.read_text())["code"]
    for path in sorted((_ROOT / "src/kernelcast/service/pages/examples").glob("*.yaml"))
}


@pytest.mark.parametrize("name", _KERNELS)
def test_kernels_of_corpus_examples_and_benchmarks_pass(name: str) -> None:
    check_reach(_KERNELS[name])


_INDIRECT = "#define J(a0, b0) a0##b0\n#define K(a0, b0) J(a0, b0)\n"
_SHAPES = (
    _INDIRECT + "void f(void) {{ K({0}, {1})(\"\"); }}",
    _INDIRECT + "void f(void) {{ K({0}, K({1}, {2}))(\"\"); }}",
    "#define J(a0, b0, c0) a0##b0##c0\nvoid f(void) {{ J({0}, {1}, {2})(\"\"); }}",
    "#define J(a0) {0}##a0##{2}\nvoid f(void) {{ J({1})(\"\"); }}",
    "#define J {0}##{1}\nvoid f(void) {{ J(\"\"); }}",
    "#define J(a0, ...) a0##__VA_ARGS__\n#define L K\n#define K(x) J(x, {1})\n"
    "void f(void) {{ L({0})(\"\"); }}",
    "#define J(a0, b0) a0##b0\n#define {0}X({0}) J({0}, {1})\nvoid f(void) {{ {0}X({2})(\"\"); }}",
)  # fmt: skip


def test_every_word_that_a_compiler_pastes_is_found() -> None:
    """Of all three pieces in seven shapes: where clang sees assembler, the source is refused."""
    seen = 0
    for shape, *pieces in product(_SHAPES, *[("__", "as", "m", "__as", "__a", "sm", "")] * 3):
        if "".join(pieces) == "__asm":
            source, text = shape.format(*pieces), ""
            with suppress(CompileError):
                text = compile_kernel(source.replace("void f", "kernel void f")).text
            if " asm " in text:
                seen += 1
                with pytest.raises(InputError):
                    check_reach(source, ())
    assert seen > 10


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "part",
    ["/**", "'", '"', "a'", "a##b ", "#define J(a) a##a\n", "\\ \n", "(", "__attribute__((aligned(",
     "#", "1.", "_", "/**/"],
)  # fmt: skip
def test_the_check_takes_time_in_proportion_to_the_text(part: str) -> None:
    """Nothing that is repeated in the longest text makes it take minutes."""
    with suppress(InputError):
        check_reach(part * (256 * 1024 // len(part)))
