from pathlib import Path

import pytest

from kernelcast.features.analysis import read_facts
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.kernel import Kernel
from kernelcast.records.operations import MemorySpace, OperationKind, add_weighted
from kernelcast.records.software_counters import LineFacts

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(ROOT.glob("examples/*/*.yaml"))
SOURCE = """\
float twice(float x)
{
    return 2.0f * x;
}

kernel void k(global float *a, int n)
{
    local float tile[64];
    int i = get_global_id(0);
    if (i >= n)
        return;
    for (int j = 0; j < n; ++j) {
        a[i] += twice(a[j])
            * a[j + 1];
    }
}
"""


def lines_of(source: str) -> dict[int, LineFacts]:
    """Split a source by its lines."""
    return {one.line: one for one in read_facts(Kernel(name="k", source=source)).lines}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_lines_add_up_to_their_blocks(path: Path) -> None:
    """Gives every operation of every block to one line, and none to two."""
    facts = read_facts(read_problem(path).kernel)
    lines = facts.lines
    for block in facts.blocks:
        total = add_weighted(
            (counts, 1) for one in lines for place, counts in one.parts if place == block.id
        )
        assert total.operations == block.operations.operations
        assert total.memory == block.operations.memory


def test_operations_are_on_the_line_where_they_begin() -> None:
    """Counts helper functions on their own lines, and expressions over several on the first."""
    lines = lines_of(SOURCE)
    assert lines[3].once.count(OperationKind.MULTIPLY) == 1
    assert lines[10].once.count(OperationKind.BRANCH) == 1
    assert lines[12].once.count(OperationKind.COMPARE, OperationKind.BRANCH) == 2
    assert lines[13].once.count(OperationKind.ADD, OperationKind.MULTIPLY) == 2
    loads = [
        lines[place].once.count_memory(MemorySpace.GLOBAL, is_store=False) for place in (13, 14)
    ]
    assert loads == [2, 1]


def test_lines_without_code_are_left_out() -> None:
    """Has nothing to say of braces, declarations of memory and blank lines."""
    assert lines_of(SOURCE).keys() == {3, 9, 10, 12, 13, 14}


def test_executions_are_those_of_the_most_frequent_part() -> None:
    """Counts the condition of a loop once more than its body."""
    line = lines_of(SOURCE)[12]
    blocks = [block for block, _ in line.parts]
    counts = [0.0] * (max(blocks) + 1)
    counts[blocks[-1]] = 7.0
    assert line.executions(counts) == 7.0
    assert line.executed(counts).operations == add_weighted([(line.parts[-1][1], 7.0)]).operations
