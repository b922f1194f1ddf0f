"""Address expressions; what really runs is compared in `tests/integration`."""

import pytest

from kernelcast.expressions.accesses import AddressPattern, MemoryAccess
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.analysis import infer_accesses, read_facts
from kernelcast.records.arguments import Access
from kernelcast.records.kernel import Kernel
from support.kernel_facts import facts_of


def analyse(body: str, *, before: str = "", options: tuple[str, ...] = ()) -> KernelFacts:
    source = f"{before} kernel void k(global int *a, global int *b, int n, uint u) {{ {body} }}"
    return read_facts(Kernel(name="k", source=source, build_options=options))


def stores(body: str, *, before: str = "") -> list[MemoryAccess]:
    accesses = analyse(f"int x = get_global_id(0); {body}", before=before).accesses
    return [one for one in accesses if one.buffer == "a" and one.kind.value == "store"]


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        ("a[x + n] = 1;", "4*global_id(0) + 4*n"),
        ("a[x / 4] = 1;", "4*floor(global_id(0) / 4)"),
        ("a[x & 6] = 1;", "8*(floor(global_id(0) / 2) mod 4)"),
        ("a[N * x] = 1;", "20*global_id(0)"),
        ("int t; if (n > 3) t = x; a[t] = 1;", "4*global_id(0)"),
        ("struct S s = {x, n}; s.p = 3; a[s.p + s.q] = 1;", "4*n + 12"),
        ("const int t[] = {5, 9}; a[t[x & 1]] = 1;", "4*(5 if global_id(0) mod 2 == 0 else 9)"),
        ("a[T[x & 1] + x] = 1;", "4*global_id(0) + 4*(3 if global_id(0) mod 2 == 0 else -4)"),
        ("int t[] = {5, 9}; t[n] = 3; a[t[x & 1]] = 1;", None),
        ("a[select(x, n, 1)] = 1;", "4*n"),
        ("a[(int)(x * 0.5f)] = 1;", None),
    ],
)
def test_offsets_are_followed(body: str, offset: str | None) -> None:
    """Gives bytes from the buffer's start, or none where it cannot tell."""
    before = "constant int N = 5, T[2] = {3, -4}; struct S { int p, q; };"
    [store] = stores(body, before=before)
    if offset is None:
        assert store.offset_bytes is None
        assert store.reason
    else:
        assert store.pattern is AddressPattern.QUASI_AFFINE
        assert str(store.offset_bytes) == offset


@pytest.mark.parametrize(
    ("place", "lanes"),
    [("a[x]", 1), ("((global int4 *)a)[x]", 4), ("v", 3)],
)
def test_numbers_of_a_vector_are_counted(place: str, lanes: int) -> None:
    [store] = stores("vstore3((int3)(1), x, a);" if place == "v" else f"{place} = 1;")
    assert store.lanes == lanes


@pytest.mark.parametrize(
    ("body", "trips", "is_exact"),
    [
        ("for (int i = 0; i < n; i++) a[i] = 1;", "max(n, 0)", True),
        ("for (int s = 64; s > 0; s >>= 1) a[s] = 1;", "7", True),
        ("for (uchar i = 0; i < 9; i++) a[i] = 1;", "9", True),
        ("int e = n; while (e--) a[e] = 1;", "n", True),
        ("int e = 0; do a[e] = 1; while (++e < 5);", "5", True),
        ("for (int i = 0; i < n; i++) { if (b[i]) break; a[i] = 1; }", "max(n, 0)", False),
        ("int i = 0; again: a[i] = 1; if (++i < n) goto again;", "max(n - 1, 0) + 1", True),
        ("for (;;) { a[0] = 1; if (b[0]) return; }", "None", False),
    ],
)
def test_trips_are_counted(body: str, trips: str, is_exact: bool) -> None:
    """Counts iterations where arguments and ids decide, and bounds them where data may."""
    [store] = stores(body)
    [loop] = store.loops
    assert (str(loop.trip_count), loop.is_exact) == (trips, is_exact)


# Two arrays of a work-item that are filled from each other.
FILLED = (
    "int c[4], d[4]; for (int i = 0; i < 4; i++) c[i] = b[i]; for (int i = 0; i < n; i++) {"
    " d[i & 3] = c[(i + n) & 3]; c[i & 3] = d[(i * n) & 3]; }"
)


@pytest.mark.parametrize(
    ("body", "sources"),
    [
        ("a[b[x]] = 1;", ("b",)),
        ("int s = 0; for (int i = 0; i < n; i++) if (b[i]) s++; a[s] = 1;", ("b",)),
        ("int t = 0; for (int i = 0; i < n; i++) { if (b[i] > 3) { t = i; break; } } a[t] = 1;",
         ("b",)),
        ("int t = x; for (int i = 0; i < n; i++) t = b[t]; a[t] = 1;", ("b",)),
        ("float t = 0, m = b[x]; for (int i = 0; i < n; i++) { t += m; m *= 2; } a[(int)t] = 1;",
         ("b",)),
        ("int4 v = vload4(x, b); a[v.z] = 1;", ("b",)),
        ("int o[2]; o[x & 1] = b[0]; a[o[1]] = 1;", ("b",)),
        (FILLED + "a[c[n & 3]] = 1;", ("b",)),
        (FILLED + "a[d[n & 3]] = 1;", ("b",)),
        ("struct S s = ((global struct S *)b)[n]; a[s.q] = 1;", ("b",)),
    ],
)  # fmt: skip
def test_data_is_named(body: str, sources: tuple[str, ...]) -> None:
    [store] = stores(body, before="struct S { int p, q; };")
    assert (store.pattern, store.sources) == (AddressPattern.INDIRECT, sources)


def test_a_pointer_into_two_buffers_is_two_accesses() -> None:
    accesses = analyse("global int *p = n > 3 ? a : b; p[1] = 2;").accesses
    assert {(one.buffer, str(one.guard)) for one in accesses} == {("a", "n >= 4"), ("b", "n < 4")}
    assert len({one.site for one in accesses}) == 1


def test_swapped_buffers_are_both() -> None:
    body = "global int *p = a, *q = b, *t; for (int i = 0; i < n; i++) {"
    accesses = analyse(f"{body} p[1] = 2; t = p; p = q; q = t; }}").accesses
    assert {one.buffer for one in accesses} == {"a", "b"}
    assert not any(one.is_exact for one in accesses)


def test_a_name_of_the_host_is_a_parameter() -> None:
    """Takes a number that -D would give as a scalar of that name, and says so."""
    facts = analyse("a[get_group_id(0) * B] = 1;")
    assert str(facts.accesses[0].offset_bytes) == "4*B*group_id(0)"
    assert "B is not defined; give -DB=..." in {gap.reason for gap in facts.gaps}
    assert str(analyse("a[B] = 1;", options=("-DB=3",)).accesses[0].offset_bytes) == "12"
    (gap,) = analyse("a[0] = blend(a[1], 2.0f);").gaps[:1]
    assert gap.reason == "the function blend is not defined; add it to the source"


@pytest.mark.parametrize(
    ("body", "gap"),
    [
        ("int i = (int)(get_global_id(0) * 1.5f); a[i] = 1;",
         "line 1: the address of a[i] is not known: computed in floating point"),
        ("int i = 0; if (n > 3) goto in; for (; i < n; i++) { a[i] = 1; in: a[i + 1] = 2; }",
         "goto"),
        ("modf(1.5f, (global float *)&a[b[0]]);", "modf"),
        ("float x; b[0] = modf(1.5f, &x);", ""),
    ],
)  # fmt: skip
def test_what_is_not_known_is_a_gap(body: str, gap: str) -> None:
    """Tells of addresses that are not known, loops with two entries, and what builtins write beside
    the work-item's own."""
    told = [f"line {one.line}: {one.reason}" for one in analyse(body).told_gaps]
    assert bool(told) == bool(gap)
    assert not gap or any(gap in one for one in told)


def test_a_type_of_the_host_is_a_float() -> None:
    """Takes a type that -D would give as float or, by its name, as a vector; errors stay."""
    facts = facts_of("kernel void k(global T *a, global T_VEC4 *b) { a[2] = b[1].x; }")
    assert {str(one.offset_bytes) for one in facts.accesses} == {"8", "16"}
    assert any("T_VEC4 is not defined, taken as float4" in gap.reason for gap in facts.gaps)


READ = Access.READ


@pytest.mark.parametrize(
    ("parameters", "body", "expected"),
    [
        ("global float *a", "a[i] = 1.0f;", (None,)),
        ("global float4 *a", "a[i].x = 1.0f;", (None,)),
        ("global struct S *a", "a[i].v[0] = 1;", (None,)),
        ("global float (*a)[4]", "a[i][1] = 1.0f;", (None,)),
        ("global int2 *a", "atomic_inc((global int *)&a[i]);", (None,)),
        ("global float *a", "vstore4((float4)(1.0f), i, a);", (None,)),
        ("global float *a", "float x = modf(1.5f, a);", (None,)),
        ("global float *a", "global float *p; p = a + 4; p[i] = 1.0f;", (None,)),
        ("global int *a", "ulong u = (ulong)a; *(global int *)u = 1;", (None,)),
        ("global int *a", "struct P s = {1, a}; s.p[i] = 1;", (None,)),
        ("global struct S *a", "helper(a[i].v);", (None,)),
        ("global float *a, global float *b", "b[i] = a[i];", (READ, None)),
        ("global float *a, global int *b", "a[b[i]] = 1.0f;", (None, READ)),
        ("global float *a, global float *b", "(i ? a : b)[i] = 1.0f;", (None, None)),
        ("global float *a, local float *b", "b[i] = a[i];", (READ, None)),
        ("global float *a, int n", "a[i] = n;", (None, None)),
        ("global float *a, int n", "n += (int)a[i];", (READ, None)),
        ("constant float *a", "float x = a[i];", (READ,)),
        ("global float *a", "float4 x = vload4(i, a);", (READ,)),
        ("global int *a", "int x = a[a[i]];", (READ,)),
        ("global int *a", "\n#ifdef WRITES\na[i] = 1;\n#endif\nint x = a[i];", (None,)),
        ("global int *a", "\n#ifndef WRITES\na[i] = 1;\n#endif\nint x = a[i];", (READ,)),
        ("global int *a", "a[i] = ;", (None,)),
        ("global int *a", "int x = a[n];", (None,)),
        ("global int *a", '\n#include "missing.h"\nint x = a[0];', (None,)),
        ("global int *a", "} \x00\x01 no source at all {{{", (None,)),
    ],
)
def test_never_calls_a_written_buffer_read(
    parameters: str, body: str, expected: tuple[Access | None, ...]
) -> None:
    """Answers for each argument on its own, with nothing where the kernel may write, for scalars,
    and where the source, as the build options make it, is not understood."""
    source = (
        "struct S { int v[4]; int w; }; struct P { int n; global int *p; };"
        f"void helper(global int *p) {{ *p = 1; }} kernel void k({parameters})"
        f"{{ int i = get_global_id(0); {body} }}"
    )
    kernel = Kernel(name="k", source=source, build_options=("-DWRITES",))
    assert infer_accesses(kernel, parameters.count(",") + 1) == expected


# What is narrowed is what Intel's compiler (version 0.2) gathers, as its machine code shows.
@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("o[y * w + x] = a[(y + 1) * w + x - 1];", None),
        ("const int i = y * w + x; if (x < w) o[i] = a[i - w];", None),
        ("for (int i = lane; i < n; i += get_local_size(0)) o[w + i] = a[i];", None),
        ("const size_t i = (size_t)y * w + x; o[i] = a[i] + a[i + 1];", None),
        ("const int row = get_local_id(1); t[row * 16 + lane] = 0;", None),
        ("local float tile[8][66]; tile[get_local_id(1)][lane + 1] = 0;", None),
        ("o[y * w] = a[y];", None),
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
def test_what_is_cut_and_widened_again_is_narrowed(body: str, text: str | None) -> None:
    """It may wrap: without a sign, cut after a sum, or with nothing but constants added; other sums
    of `int` must not, so that neighbours stay neighbours."""
    facts = facts_of(
        "float pick(global const float *from, int at) { return from[at]; } kernel void k("
        "global float *a, global float *o, local float *t, int w, int n, uint u) { const int x ="
        f" get_global_id(0), y = get_global_id(1), lane = get_local_id(0); {body} }}"
    )
    narrowed = {one.text for one in facts.accesses if one.is_narrowed}
    assert text in narrowed if text else not narrowed
