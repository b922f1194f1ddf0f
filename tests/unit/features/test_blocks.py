"""Operations and counts of kernels that were counted by hand."""

import pytest

from kernelcast.expressions.kernel_facts import ONCE, BlockFacts
from kernelcast.features.analysis import analyse_parsed
from kernelcast.features.parsing import parse_source

_PARAMETERS = "global float *a, global int *b, int n, float x, float4 v, local float *t"


def divide(body: str, before: str = "") -> list[BlockFacts]:
    """Give the blocks of a kernel that execute something."""
    parsed = parse_source(f"{before} kernel void k({_PARAMETERS}) {{ {body} }}")
    assert parsed.errors == ()
    blocks = analyse_parsed(parsed, "k").facts.blocks
    return [one for one in blocks if one.operations.operations or one.operations.memory]


def write(block: BlockFacts) -> str:
    """Write a block's operations in the order of their names."""
    counts = {**block.operations.operations, **block.operations.memory}
    return ", ".join(sorted(f"{times} {what}" for what, times in counts.items()))


@pytest.mark.parametrize(
    ("body", "operations"),
    [
        ("a[0] = x * x + 1.0f;",
         "1 add fp32, 1 address, 1 multiply fp32, 1 store global 4 B"),
        ("v = v * v + v; a[0] = v.x;",
         "1 add fp32x4, 1 address, 1 multiply fp32x4, 1 store global 4 B"),
        ("a[0] = fma(x, x, x) + mad(x, x, x);",
         "1 add fp32, 1 address, 1 store global 4 B, 2 multiply_add fp32"),
        ("a[0] = sin(x) + native_sin(x) + half_sqrt(x);",
         "1 address, 1 half_sqrt fp32, 1 native_sin fp32, 1 sin fp32, 1 store global 4 B,"
         " 2 add fp32"),
        ("b[0] = (int)x; a[1] = n;", "2 address, 2 convert fp32, 2 store global 4 B"),
        ("atomic_add(b, 1); barrier(CLK_LOCAL_MEM_FENCE);", "1 atomic_add int32, 1 barrier"),
        ("vstore4(vload4(0, a), 0, a);", "1 load global 16 B, 1 store global 16 B"),
        ("event_t e = async_work_group_copy(t, a, 4, 0); wait_group_events(1, &e);",
         "1 async_work_group_copy, 1 wait_group_events"),
        ("struct { float p, q; } s; s.p = x; a[0] = s.p;", "1 address, 1 store global 4 B"),
        ("float r[4]; r[n] = x; a[0] = r[0];",
         "1 load private 4 B, 1 store global 4 B, 1 store private 4 B, 3 address"),
        ("t[1] += a[2];",
         "1 add fp32, 1 load global 4 B, 1 load local 4 B, 1 store local 4 B, 2 address"),
        ("b[n]++;", "1 add int32, 1 address, 1 load global 4 B, 1 store global 4 B"),
        ("a[0] = dot(v, v);", "1 address, 1 multiply fp32x4, 1 store global 4 B, 3 add fp32"),
        ("b[0] = max(n, 3);", "1 address, 1 select int32, 1 store global 4 B"),
        ("if (0) b[0] = 1;", ""),
        ("b[2 * 3] = sizeof(int);", "1 address, 1 store global 4 B"),
    ],
)  # fmt: skip
def test_straight_code_is_counted(body: str, operations: str) -> None:
    """Counts each operation once, at its width and lanes."""
    blocks = divide(body)
    assert ", ".join(map(write, blocks)) == operations
    assert all(one.count == ((ONCE, 1),) for one in blocks)


_STORE = "1 address, 1 store global 4 B"
_JUMPING_STORE = "1 address, 1 jump, 1 store global 4 B"
_TEST = "1 branch, 1 compare int32"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (n > 3) a[0] = x; else a[1] = x;",
         [("1", _TEST), ("c0", _JUMPING_STORE), ("1 - c0", _JUMPING_STORE)]),
        ("for (int i = 0; i < n; i++) b[i] = i;",
         [("1", "1 jump"), ("c0", _JUMPING_STORE), ("c0", "1 add int32, 1 jump"),
          ("1 + c0", _TEST)]),
        ("while (n > 0) { n--; if (n == 3) break; if (n == 5) continue; b[n] = 1; }",
         [("1", "1 jump"), ("c0", f"1 add int32, {_TEST}"),
          ("c1", "1 jump"), ("c0 - c1", _TEST), ("c2", "1 jump"),
          ("c0 - c1 - c2", _JUMPING_STORE), ("1 + c0 - c1", _TEST)]),
        ("do { b[n] = 1; n--; } while (n > 0);",
         [("1", "1 jump"), ("c0", f"1 add int32, {_JUMPING_STORE}"), ("c0", _TEST)]),
        ("b[0] = n > 2 ? b[1] : b[2];",
         [("1", f"1 address, {_TEST}, 1 store global 4 B"),
          ("c0", "1 address, 1 jump, 1 load global 4 B"),
          ("1 - c0", "1 address, 1 jump, 1 load global 4 B")]),
        ("if (n > 1 && n < 9) b[0] = 1;",
         [("1", _TEST), ("c0", _TEST), ("c1", _JUMPING_STORE)]),
        ("if (n > 3) return; b[0] = 1;",
         [("1", _TEST), ("c0", "1 jump"), ("1 - c0", _JUMPING_STORE)]),
    ],
)  # fmt: skip
def test_branches_and_loops_are_counted(body: str, expected: list[tuple[str, str]]) -> None:
    """Gives each block's count by counters, and the jumps that clang's layout has."""
    assert [(count_text(one), write(one)) for one in divide(body)] == expected


def count_text(block: BlockFacts) -> str:
    """Write a count as a sum of counters."""
    text = ""
    for counter, factor in block.count:
        name = "1" if counter == ONCE else f"c{counter}"
        text += f"{' + ' if text else ''}{name}" if factor > 0 else f" - {name}"
        assert abs(factor) == 1
    return text


def test_a_switch_counts_its_labels() -> None:
    """Counts each label, fall through included, and one jump at the end of each."""
    body = "switch (n) { case 1: b[0] = 1; case 2: b[1] = 2; break; default: b[2] = 3; }"
    entry, *cases = divide(body)
    assert "1 branch" in write(entry)
    assert [(count_text(one), write(one)) for one in cases] == [
        (name, _JUMPING_STORE) for name in ("c0", "c1", "c2")
    ]


def test_helpers_add_up_over_their_calls() -> None:
    """Counts a helper's body once for each call: once, and twice where n is not zero."""
    before = "float f(float y) { return y * 2; }"
    *_, helper = divide("a[0] = f(x); if (n) a[1] = f(x) + f(x);", before)
    assert helper.count == ((ONCE, 1), (0, 2))
    assert write(helper) == "1 multiply fp32"
