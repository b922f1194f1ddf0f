"""Operations and counts of kernels that were counted by hand."""

import pytest

from kernelcast.expressions.kernel_facts import ONCE, BlockFacts
from kernelcast.features.analysis import read_facts
from kernelcast.features.parsing import parse_source
from kernelcast.records.kernel import Kernel

_PARAMETERS = "global float *a, global int *b, int n, float x, float4 v, local float *t"


def divide(body: str, before: str = "") -> list[BlockFacts]:
    """Give the blocks of a kernel that execute something."""
    parsed = parse_source(f"{before} kernel void k({_PARAMETERS}) {{ {body} }}")
    assert parsed.errors == ()
    blocks = read_facts(Kernel(name="k", source=parsed.source)).blocks
    return [one for one in blocks if one.operations.operations or one.operations.memory]


def write(block: BlockFacts) -> str:
    """Write a block's operations in the order of their names."""
    counts = {**block.operations.operations, **block.operations.memory}
    return ", ".join(sorted(f"{times} {what}" for what, times in counts.items()))


@pytest.mark.parametrize(
    ("body", "operations"),
    [
        ("a[0] = x * x + 1.0f;", "1 add fp32, 1 multiply fp32, 1 store global 4 B"),
        ("v = v * v + v; a[0] = v.x;", "1 add fp32x4, 1 multiply fp32x4, 1 store global 4 B"),
        ("a[0] = x * x - v.x;", "1 add fp32, 1 multiply fp32, 1 store global 4 B"),
        ("a[0] = fma(x, x, x) + mad(x, x, x);",
         "1 add fp32, 1 store global 4 B, 2 multiply_add fp32"),
        ("a[0] = sin(x) + native_sin(x) + half_sqrt(x);",
         "1 half_sqrt fp32, 1 native_sin fp32, 1 sin fp32, 1 store global 4 B, 2 add fp32"),
        ("b[0] = (int)x; a[1] = n;", "1 address, 2 convert fp32, 2 store global 4 B"),
        ("atomic_add(b, 1); barrier(CLK_LOCAL_MEM_FENCE);", "1 atomic_add int32, 1 barrier"),
        ("vstore4(vload4(0, a), 0, a);", "1 load global 16 B, 1 store global 16 B"),
        ("struct { float p, q; } s; s.p = x; a[0] = s.p;", "1 store global 4 B"),
        ("float r[4]; r[n] = x; a[0] = r[0];",
         "1 address, 1 load private 4 B, 1 store global 4 B, 1 store private 4 B"),
        ("t[1] += a[2];",
         "1 add fp32, 1 load global 4 B, 1 load local 4 B, 1 store local 4 B, 2 address"),
        ("b[n]++;", "1 add int32, 1 address, 1 load global 4 B, 1 store global 4 B"),
        ("a[0] = dot(v, v);", "1 multiply fp32x4, 1 store global 4 B, 3 add fp32"),
        ("b[0] = max(n, 3);", "1 select int32, 1 store global 4 B"),
        ("if (0) b[0] = 1;", ""),
        ("b[2 * 3] = sizeof(int);", "1 address, 1 store global 4 B"),
    ],
)  # fmt: skip
def test_straight_code_is_counted(body: str, operations: str) -> None:
    """Counts each operation once, at its width and lanes."""
    blocks = divide(body)
    assert ", ".join(map(write, blocks)) == operations
    assert all(one.count == ((ONCE, 1),) for one in blocks)


_STORE, _JUMPING_STORE = "1 jump, 1 store global 4 B", "1 address, 1 jump, 1 store global 4 B"
_TEST = "1 branch, 1 compare int32"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (n > 3) a[0] = x; else a[1] = x;",
         [("entry", _TEST), ("then", _STORE), ("else", _JUMPING_STORE)]),
        ("for (int i = 0; i < n; i++) b[i] = i;",
         [("entry", "1 jump"), ("loop condition", _TEST), ("loop body", _JUMPING_STORE),
          ("loop step", "1 add int32")]),
        ("while (n > 0) { n--; if (n == 3) break; if (n == 5) continue; b[n] = 1; }",
         [("entry", "1 jump"), ("loop condition", _TEST), ("loop body", f"1 add int32, {_TEST}"),
          ("then", _TEST), ("then", _JUMPING_STORE)]),
        ("do { b[n] = 1; n--; } while (n > 0);",
         [("entry", "1 jump"),
          ("loop body", f"1 add int32, 1 address, {_TEST}, 1 store global 4 B")]),
        ("b[0] = n > 2 ? b[1] : b[2];",
         [("entry", f"{_TEST}, 1 store global 4 B"),
          ("then", "1 address, 1 jump, 1 load global 4 B"),
          ("else", "1 address, 1 jump, 1 load global 4 B")]),
        ("if (n > 1 && n < 9) b[0] = 1;",
         [("entry", _TEST), ("then", _TEST), ("then", _STORE)]),
        ("if (n > 3) return; b[0] = 1;", [("entry", _TEST), ("then", _STORE)]),
    ],
)  # fmt: skip
def test_branches_and_loops_are_counted(body: str, expected: list[tuple[str, str]]) -> None:
    """Gives a block for each part that is executed as often, and how it comes to be executed."""
    assert [(one.kind, write(one)) for one in divide(body)] == expected


def test_a_switch_counts_its_labels() -> None:
    """Counts each label, fall through included."""
    body = "switch (n) { case 1: b[0] = 1; case 2: b[1] = 2; break; default: b[2] = 3; }"
    entry, *cases = divide(body)
    assert "1 branch" in write(entry)
    assert [one.kind for one in cases] == ["case"] * 3
    assert len({one.count for one in cases}) == 3


def test_helpers_are_counted_where_they_are_called() -> None:
    """Counts a helper's body once for each call."""
    before = "float f(float y) { return y * 2; }"
    entry, then = divide("a[0] = f(x); if (n) a[1] = f(x) + f(x);", before)
    assert (entry.function, then.function) == ("k", "k")
    assert ["multiply fp32" in write(one) for one in (entry, then)] == [True, True]
    assert "2 multiply fp32" in write(then)
