"""Loops that wait for others are told from those that go on by themselves."""

from pathlib import Path

import pytest

from kernelcast.features.analysis import analyse
from kernelcast.features.ir.reading import compile_source
from kernelcast.features.work_queues import find_wait_loop
from kernelcast.records.kernel import Kernel

_ROOT = Path(__file__).parents[3]
_HEAD = """int is_set(volatile global int *f) { return *f; }
kernel void k(volatile global int *f, global int *a, int n) { int v, i = get_global_id(0);
"""
_WAITING = (
    "while (f[0] == 0);",
    "while (!f[i]) { }",
    "while (!is_set(f));",
    "do { v = *f; } while (v != n);",
    "for (;;) { if (f[0]) break; }",
    "while (atomic_xchg(f, 1)); a[i] = 0; atomic_xchg(f, 0);",
    "while (atomic_cmpxchg(f, 0, 1) != 0);",
    "while (atomic_add(f, 0) < n) {}",
    "int m = atomic_inc(f); while (f[1] != m); atomic_inc(f + 1);",
    "while (f[i - 1] == 0) mem_fence(CLK_GLOBAL_MEM_FENCE);",
)
_GOING_ON = (
    "while (f[i]) i++;",
    "while (i != 0) i = a[i];",
    "for (v = 0; v < n; v++) a[v] = f[v];",
    "do { v = *f; } while (atomic_cmpxchg(f, v, v + 1) != v);",
    "while (a[i] < 3) a[i]++;",
    "int t = 0; for (;;) { if (f[0] || t++ > 99) break; }",
    "while (n > 1) { n = n % 2 ? 3 * n + 1 : n / 2; v = f[n]; }",
    "int x = i; while (x) { v = f[x]; int y = x - 1; x = y; }",
    "int l = 0, h = n; while (l < h) { int m = (l + h) / 2; if (a[m] < n) l = m + 1; else h = m; }",
    "do { a[i] = f[i]; } while (0);",
)


def _find(source: str) -> str:
    return find_wait_loop(analyse(Kernel(name="k", source=f"{_HEAD}{source} }}")))


@pytest.mark.parametrize("source", _WAITING)
def test_a_loop_that_changes_nothing_waits(source: str) -> None:
    """Flags, tickets, locks and barriers of all work-groups, in helper functions too."""
    assert "ends when somebody else writes to memory" in _find(source)


@pytest.mark.parametrize("source", ["for (;;);", "while (1) { v = i; }"])
def test_a_loop_without_an_end_is_found(source: str) -> None:
    """Its line is named."""
    assert _find(source) == "line 3: the loop has no end"


@pytest.mark.parametrize("source", _GOING_ON)
def test_a_loop_that_goes_on_is_left_alone(source: str) -> None:
    """Counters, searches, lists and sums by compare-and-swap change what their ends depend on."""
    assert _find(source) == ""


def test_no_kernel_of_the_corpus_waits() -> None:
    """Searches by halves, probing and lists among them are none."""
    for path in sorted((_ROOT / "src/kernelcast/training_data/corpus").rglob("*.cl")):
        source, options = path.read_text(), (f"-I{path.parent}",)
        for name in compile_source(source, options, path.name).kernels:
            assert (
                find_wait_loop(analyse(Kernel(name=name, source=source, build_options=options)))
                == ""
            ), f"{path.name}: {name}"
