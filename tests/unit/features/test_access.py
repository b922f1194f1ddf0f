import pytest

from kernelcast.features.analysis import infer_accesses
from kernelcast.records.arguments import Access
from kernelcast.records.kernel import Kernel
from support.kernel_facts import facts_of

READ = Access.READ
S = "struct S { int v[4]; int w; };"
P = "struct P { int n; global int *p; };"


def infer(parameters: str, body: str, before: str = "", *options: str) -> tuple[Access | None, ...]:
    source = f"{before}\nkernel void k({parameters})\n{{ int i = get_global_id(0); {body} }}\n"
    kernel = Kernel(name="k", source=source, build_options=options)
    return infer_accesses(kernel, parameters.count(",") + 1)


@pytest.mark.parametrize(
    ("parameters", "body", "before"),
    [
        ("global float *a", "a[i] = 1.0f;", ""),
        ("global float4 *a", "a[i].x = 1.0f;", ""),
        ("global struct S *a", "a[i].v[0] = 1;", S),
        ("global float (*a)[4]", "a[i][1] = 1.0f;", ""),
        ("global int2 *a", "atomic_inc((global int *)&a[i]);", ""),
        ("global float *a", "vstore4((float4)(1.0f), i, a);", ""),
        ("global float *a", "float x = modf(1.5f, a);", ""),
        ("global float *a", "global float *p; p = a + 4; p[i] = 1.0f;", ""),
        ("global int *a", "ulong u = (ulong)a; *(global int *)u = 1;", ""),
        ("global int *a", "struct P s = {1, a}; s.p[i] = 1;", P),
        ("global struct S *a", "helper(a[i].v);", S + "void helper(global int *p) { *p = 1; }"),
    ],
)
def test_never_calls_a_written_buffer_read(parameters: str, body: str, before: str) -> None:
    """Leaves the answer open wherever the kernel may write, so that a copy protects the buffer."""
    assert infer(parameters, body, before) == (None,)


@pytest.mark.parametrize(
    ("parameters", "body", "expected"),
    [
        ("global float *a, global float *b", "b[i] = a[i];", (READ, None)),
        ("global float *a, global int *b", "a[b[i]] = 1.0f;", (None, READ)),
        ("global float *a, global float *b", "(i ? a : b)[i] = 1.0f;", (None, None)),
        ("global float *a, local float *b", "b[i] = a[i];", (READ, None)),
        ("global float *a, int n", "a[i] = n;", (None, None)),
        ("global float *a, int n", "n += (int)a[i];", (READ, None)),
        ("constant float *a", "float x = a[i];", (READ,)),
        ("global float *a", "float4 x = vload4(i, a);", (READ,)),
        ("global int *a", "int x = a[a[i]];", (READ,)),
    ],
)
def test_tells_the_arguments_apart(
    parameters: str, body: str, expected: tuple[Access | None, ...]
) -> None:
    """Answers for each argument on its own, and for scalars with nothing."""
    assert infer(parameters, body) == expected


def test_follows_the_preprocessor() -> None:
    """Judges the source as the build options make it."""
    body = "\n#ifdef WRITES\na[i] = 1;\n#endif\nint x = a[i];"
    assert infer("global int *a", body) == (READ,)
    assert infer("global int *a", body, "", "-DWRITES") == (None,)


@pytest.mark.parametrize(
    "source",
    [
        "kernel void k(global int *a) { a[i] = ; }",
        "kernel void k(global int *a);",
        "kernel void k(global int *a, int n) { int x = a[n]; }",
        '#include "missing.h"\nkernel void k(global int *a) { int x = a[0]; }',
        "\x00\x01 no source at all {{{",
    ],
)
def test_says_nothing_of_what_it_does_not_understand(source: str) -> None:
    """Leaves every answer open for a source that does not parse or has no such kernel."""
    assert infer_accesses(Kernel(name="k", source=source), 1) == (None,)


# What is narrowed is what Intel's compiler (version 0.2) gathers, as its machine code shows.
_IDS = "const int x = get_global_id(0), y = get_global_id(1), lane = get_local_id(0);"
_PARAMETERS = "global float *a, global float *o, local float *t, int w, int n, uint u"


def find_narrowed(body: str) -> set[str]:
    helper = "float pick(global const float *from, int at) { return from[at]; }"
    source = f"{helper} kernel void k({_PARAMETERS}) {{ {_IDS} {body} }}"
    return {one.text for one in facts_of(source).accesses if one.is_narrowed}


@pytest.mark.parametrize(
    "body",
    [
        "o[y * w + x] = a[(y + 1) * w + x - 1];",
        "const int i = y * w + x; if (x < w) o[i] = a[i - w];",
        "for (int i = lane; i < n; i += get_local_size(0)) o[w + i] = a[i];",
        "const size_t i = (size_t)y * w + x; o[i] = a[i] + a[i + 1];",
        "const int row = get_local_id(1); t[row * 16 + lane] = 0;",
        "local float tile[8][66]; tile[get_local_id(1)][lane + 1] = 0;",
        "o[y * w] = a[y];",
    ],
)
def test_sums_with_numbers_of_32_bits_are_followed(body: str) -> None:
    """A sum of `int` must not wrap, so that neighbours stay neighbours."""
    assert find_narrowed(body) == set()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("o[x] = 0;", "o[x]"),
        ("o[(size_t)y * w + x] = 0;", "o[(size_t)y * w + x]"),
        ("const size_t i = (size_t)y * w + x; if (x >= 2) o[i] = a[i];", "o[i]"),
        ("const uint i = get_global_id(0) + u; o[i] = 0;", "o[i]"),
        ("const int i = get_global_id(0) + w * get_global_id(1); o[i] = 0;", "o[i]"),
        ("const int s = get_global_size(0); o[y * s + x] = 0;", "o[y * s + x]"),
        ("for (int k = 0; k < n; ++k) t[0] += a[k * w + x];", "a[k * w + x]"),
        ("o[x + w] = a[get_global_id(0)];", "o[x + w]"),
        ("t[lane] = 0;", "t[lane]"),
        ("global const float *row = a + (size_t)y * w + x; t[0] = row[w];", "row[w]"),
        ("o[y * w + x] = pick(a, x);", "from[at]"),
    ],
)
def test_what_is_cut_and_widened_again_is_not_followed(body: str, text: str) -> None:
    """It may wrap: without a sign, cut after a sum, or with nothing but constants added."""
    assert text in find_narrowed(body)
