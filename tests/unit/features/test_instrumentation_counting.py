import pytest

from kernelcast.features.analysis import analyse
from kernelcast.features.instrumentation.source import instrument
from kernelcast.features.parsing import parse_source
from kernelcast.records.errors import InputError
from kernelcast.records.instrumented_kernel import InstrumentedKernel
from kernelcast.records.kernel import Kernel


def copy_of(source: str, *, records_addresses: bool = False) -> InstrumentedKernel:
    """Write the counting copy of the kernel `k` of a source, and check that it compiles."""
    kernel = Kernel(name="k", source=source)
    copy = instrument(kernel, analyse(kernel), records_addresses=records_addresses)
    assert parse_source(copy.header + copy.kernel.source).errors == ()
    return copy


def test_branches_and_loops_count() -> None:
    """Increments a counter where a branch or a loop's body begins, and nowhere else."""
    copy = copy_of(
        "kernel void k(global int *a, int n) {\n"
        "    for (int i = 0; i < n; ++i)\n        a[i] = 1;\n"
        "    if (n > 3) { a[0] = 2; } else a[1] = 3;\n}\n"
    )
    assert copy.counter_count == 2
    assert "{ KC(0); a[i] = 1; }" in copy.kernel.source
    assert "{ KC(1); a[0] = 2; } else a[1] = 3;" in copy.kernel.source


def test_lines_of_the_kernel_stay_where_they_were() -> None:
    """Puts the kernel's own lines back after each of ours, so that messages name them."""
    source = "kernel void k(global int *a)\n{\n    if (a[0])\n        a[1] = undeclared_;\n}\n"
    kernel = Kernel(name="k", source=source.replace("undeclared_", "2"))
    copy = instrument(kernel, analyse(kernel))
    broken = copy.kernel.source.replace("= 2", "= undeclared_")
    parsed = parse_source(copy.header + '#line 1 "k.cl"\n' + broken)
    assert "undeclared_" in parsed.errors[0]


@pytest.mark.parametrize(
    "statement",
    [
        "a[0] = n > 2 ? a[1] : a[2];",
        "if (n > 1 && a[0] > 2 || a[1]) a[0] = 1;",
        "while (n--) if (a[n]) break; else continue;",
        "do a[n] = 1; while (--n > 0);",
        "switch (n) { case 1: a[0] = 1; case 2: a[1] = 1; break; default: a[2] = 1; }",
        "for (;;) { if (a[n]) return; ++n; }",
        "again: if (a[n]) { --n; goto again; }",
        "for (int i = 0, j = n; i < j; i++, j--) { a[i] = a[j]; }",
    ],
)
@pytest.mark.parametrize("records_addresses", [False, True])
def test_every_kind_of_statement_compiles(statement: str, records_addresses: bool) -> None:
    """Keeps braces, semicolons and precedence right around what it inserts."""
    source = f"kernel void k(global int *a, int n) {{ {statement} }}"
    assert copy_of(source, records_addresses=records_addresses).counter_count > 0


def test_helpers_that_count_are_handed_the_counters() -> None:
    """Adds the parameter to definition, declaration and calls, through helpers in between."""
    copy = copy_of(
        "int inner(int n);\n"
        "int outer(int n) { return inner(n) + 1; }\n"
        "int inner(int n) { while (n > 3) n /= 2; return n; }\n"
        "float plain(float x) { return x * 2; }\n"
        "kernel void k(global float *a) { a[0] = plain(outer(7)); }\n"
    )
    text = copy.kernel.source
    assert "int inner(int n, __private uint *kc_n);" in text
    assert "int outer(int n, __private uint *kc_n) { return inner(n, kc_n) + 1; }" in text
    assert "plain(outer(7, kc_n))" in text
    assert "float plain(float x) {" in text


def test_blocks_within_macros_are_written_out() -> None:
    """Counts a block that a macro makes, in a copy whose functions have no macros."""
    copy = copy_of(
        "#define EACH(v, n) for (int v = 0; v < (n); ++v) {\n#define END }\n"
        "kernel void k(global float4 *a, const int n) {\n"
        "    EACH(i, n) a[i].xy = (float2)(i, 1.5f); END\n}\n"
    )
    assert copy.counter_count == 1
    assert "KC(0);" in copy.kernel.source


def test_each_access_writes_its_address_down() -> None:
    """Gives a place to each access, one to both sides of a compound assignment."""
    copy = copy_of(
        "kernel void k(global int *a, global int *b, local int *s) {\n"
        "    s[a[0]] += b[1]; atomic_add(&b[2], 3); int4 v = vload4(1, a); b[v.x] = 0;\n}\n",
        records_addresses=True,
    )
    assert copy.records_addresses
    assert copy.bases == ("a", "b", "s")
    assert sorted(len(sites) for sites in copy.places) == [1, 1, 1, 1, 1, 2]


def test_a_source_with_errors_is_refused() -> None:
    """Says what the compiler complains about; a half-understood kernel would count wrongly."""
    kernel = Kernel(name="k", source="kernel void k(global int *a) { a[0] = missing(); }")
    with pytest.raises(InputError, match="cannot be counted; error in the source"):
        instrument(kernel, analyse(kernel))


def test_a_block_in_an_included_function_is_refused() -> None:
    """Says that a function made by a macro as a whole cannot be rewritten."""
    source = (
        "#define HELPER int help(int n) { while (n > 3) n /= 2; return n; }\n"
        "HELPER\nkernel void k(global int *a) { a[0] = help(a[1]); }"
    )
    kernel = Kernel(name="k", source=source)
    with pytest.raises(InputError, match="help: is made by a macro"):
        instrument(kernel, analyse(kernel))
