"""Kernels whose work-groups fetch their work are told from all others that count atomically."""

import re
from pathlib import Path

import pytest

from kernelcast.expressions.accesses import AccessKind
from kernelcast.features.analysis import compile_source, read_facts
from kernelcast.features.work_queues import find_wait_loop, find_work_queue
from kernelcast.records.kernel import Kernel

_ROOT = Path(__file__).parents[3]
_FOLDERS = ("src/kernelcast/training_data", "examples", "benchmarks")
_COUNTER = "kernel void k(global volatile int *c, global float *a, int n) { int i; "
_ATOMIC = "kernel void k(global atomic_int *c, global float *a, int n) { int i; "
_FETCHING = {
    "break": _COUNTER + "for (;;) { i = atomic_add(c, 1); if (i >= n) break; a[i] *= 2; } }",
    "fetch_add": _ATOMIC
    + "do { i = atomic_fetch_add(c, 1); if (i < n) a[i] *= 2; } while (i < n); }",
    "program_scope": "global atomic_int own;"
    + _ATOMIC
    + "do { i = atomic_fetch_add(&own, 1); if (i < n) a[i] *= 2; } while (i < n); }",
    "queue_of_some": _COUNTER + "int q = get_group_id(0) % 4;"
    "do { i = atomic_inc(&c[q]); if (i < n) a[i] *= 2; } while (i < n); }",
    "leader": _COUNTER + "local int next; while (true) {"
    "if (get_local_id(0) == 0) next = atomic_add(c, 1); barrier(CLK_LOCAL_MEM_FENCE); i = next;"
    "barrier(CLK_LOCAL_MEM_FENCE); if (i >= n) break; a[i] *= 2; } }",
    "all_in_helper": "int one(volatile global int *c, int n, global float *a) {"
    "int i = atomic_inc(c); if (i >= n) return 0; a[i] *= 2; return 1; }"
    + _COUNTER
    + "while (one(c, n, a)); }",
    "down": _COUNTER + "while ((i = atomic_dec(c)) > 0) a[i] *= 2; }",
    "bounded": _COUNTER + "for (int r = 0; r < 10000; r++) {"
    "i = atomic_inc(c); if (i >= n) break; a[i] *= 2; } }",
}
_NUMBERS = "kernel void k(global volatile int *c, global int *d, global const int *w, int n) {"
_SPREAD = "for (int i = get_global_id(0); i < n; i += get_global_size(0)) "
_OTHERS = {
    "histogram": _NUMBERS + _SPREAD + "atomic_inc(&c[w[i]]); }",
    "append": _NUMBERS + _SPREAD + "if (w[i] > 0) {"
    "int p = atomic_inc(c); if (p >= d[0]) break; d[p + 1] = i; } }",
    "float_add": "void add(volatile global float *p, float x) {"
    "union { uint u; float f; } o, n; do { o.f = *p; n.f = o.f + x; }"
    "while (atomic_cmpxchg((volatile global uint *)p, o.u, n.u) != o.u); }"
    "kernel void k(global float *p) { add(p, 1.0f); }",
    "exchange_lock": _NUMBERS + "while (atomic_xchg(c, 1)); d[0]++; atomic_xchg(c, 0); }",
    "counting_lock": _NUMBERS
    + "while (atomic_inc(c) != 0) atomic_dec(c); d[0]++; atomic_dec(c); }",
    "barrier_of_all": _NUMBERS + "for (int r = 0; r < 10; r++) {"
    "d[get_global_id(0)]++; atomic_inc(c);"
    "while (atomic_add(c, 0) < (r + 1) * get_global_size(0)); } }",
    "last_work_group": _NUMBERS + "for (int i = 0; i < n; i++) d[i]++;"
    "if (atomic_inc(c) == get_num_groups(0) - 1) for (int i = 0; i < n; i++) d[0] += d[i]; }",
    "own_counter": _COUNTER
    + "do { i = atomic_inc(&c[get_group_id(0)]); if (i < n) a[i] *= 2; } while (i < n); }",
    "local_counter": _COUNTER
    + "local int t; do { i = atomic_inc(&t); if (i < n) a[i] *= 2; } while (i < n); }",
    "data_counter": _NUMBERS
    + "int i; do { i = atomic_inc(c + w[get_global_id(0)]); if (i < n) d[i]++; } while (i < n); }",
    "marks": _NUMBERS + "int sp = 1, st[64]; st[0] = get_global_id(0); while (sp > 0) {"
    "int x = st[--sp]; if (atomic_inc(&c[x]) == 0) st[sp++] = d[x]; } }",
    "result_unused": _NUMBERS
    + "int x = get_global_id(0); while (d[x] != 0) { atomic_inc(c); x = d[x]; } }",
}


@pytest.mark.parametrize("name", [*_FETCHING, *_OTHERS])
def test_a_loop_that_ends_by_a_shared_counter_is_found(name: str) -> None:
    """However the counter is written; histograms, outputs that fill up, float sums, locks and own
    counters fetch no work."""
    kernel = Kernel(name="k", source=(_FETCHING | _OTHERS)[name])
    assert not read_facts(kernel).gaps
    found = find_work_queue(kernel)
    assert bool(found) == (name in _FETCHING)
    assert not found or "a counter that all work-groups share" in found


def test_the_lines_of_loop_and_counter_are_named() -> None:
    """The reader finds the loop, and the operation in the helper function."""
    source = (
        "int next(volatile global int *c) {\n  return atomic_inc(c);\n}\n"
        "kernel void k(volatile global int *c, global int *a, int n) {\n  int i;\n"
        "  while ((i = next(c)) < n)\n    a[i] = 0;\n}"
    )
    found = find_work_queue(Kernel(name="k", source=source))
    assert found.startswith("line 6: the loop ends by what atomic_inc in line 2 returns")


def test_no_kernel_of_corpus_examples_and_benchmarks_fetches_work_or_waits() -> None:
    """None of those with `while` or atomic operations, 14 of which count, is taken for one."""
    found, atomic, kernels = [], 0, 0
    for path in sorted(path for one in _FOLDERS for path in (_ROOT / one).rglob("*.cl")):
        source, options = path.read_text(), (f"-I{path.parent}",)
        if not re.search(r"\b(while|atom)", source):
            continue
        for one in compile_source(source, options, "<source>").kernels:
            kernel = Kernel(name=one.name, source=source, build_options=options)
            kernels += 1
            accesses = read_facts(kernel).accesses
            atomic += any(each.kind is AccessKind.ATOMIC for each in accesses)
            if find_work_queue(kernel) or find_wait_loop(kernel):
                found.append(f"{path.name}: {one.name}")
    assert kernels >= 45
    assert atomic >= 14
    assert found == []


_HEAD = """int is_set(volatile global int *f) { return *f; }
kernel void k(volatile global int *f, global int *a, int n) { int v, i = get_global_id(0);
"""
_WAITS = "ends when other work-items write to memory"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("while (f[0] == 0);", _WAITS),
        ("while (!is_set(f));", _WAITS),
        ("while (atomic_xchg(f, 1)); a[i] = 0; atomic_xchg(f, 0);", _WAITS),
        ("while (atomic_add(f, 0) < n) {}", _WAITS),
        ("int m = atomic_inc(f); while (f[1] != m); atomic_inc(f + 1);", _WAITS),
        ("while (f[i - 1] == 0) mem_fence(CLK_GLOBAL_MEM_FENCE);", _WAITS),
        ("for (;;);", "line 3: the loop has no end"),
        ("while (1) { v = i; }", "line 3: the loop has no end"),
        ("while (f[i]) i++;", ""),
        ("for (v = 0; v < n; v++) a[v] = f[v];", ""),
        ("do { v = *f; } while (atomic_cmpxchg(f, v, v + 1) != v);", ""),
        ("int t = 0; for (;;) { if (f[0] || t++ > 99) break; }", ""),
        ("while (n > 1) { n = n % 2 ? 3 * n + 1 : n / 2; v = f[n]; }", ""),
        ("int l = 0, h = n; while (l < h) {"
         " int m = (l + h) / 2; if (a[m] < n) l = m + 1; else h = m; }", ""),
    ],
)  # fmt: skip
def test_a_loop_that_changes_nothing_waits(body: str, found: str) -> None:
    """Flags, tickets, locks and barriers of all work-groups wait, in helper functions too; what
    counters, searches, lists and sums by compare-and-swap depend on changes."""
    said = find_wait_loop(Kernel(name="k", source=f"{_HEAD}{body} }}"))
    assert _WAITS in said if found == _WAITS else said == found
