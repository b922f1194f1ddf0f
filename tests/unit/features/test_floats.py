"""Floating-point numbers that decide nothing need not be followed through loops."""

from pathlib import Path

import pytest

from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.addresses import walk
from kernelcast.features.addresses.floats import may_decide
from kernelcast.features.analysis import analyse_parsed
from kernelcast.features.parsing import list_kernels, parse_source
from kernelcast.features.syntax.tree import Node, SyntaxTree

ROOT = Path(__file__).parents[3]
FILES = [
    *sorted((ROOT / "examples").rglob("*.cl")),
    *sorted((ROOT / "tests" / "integration" / "address_kernels").glob("*.cl")),
]
HELPERS = """
struct S { float x; int i; };
float half_of(float x) { return 0.5f * x; }
int whole(float x) { return (int)x; }
void put(float *p, float x) { p[0] = x; }
"""
# Sums in a private array, whose outcome is a place to store at.
BINS = """
kernel void k(global int *a, global const float *f, int n) {
    float sum[2];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 2; j++) sum[j] += f[2 * i + j];
    a[%s] = 1;
}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("f[0] = sqrt(f[1]) * n;", False),
        ("float s[2][2] = {{0}}; for (int i = 0; i < n; i++) s[i & 1][0] += f[i];", False),
        ("float4 v = vload4(n, f); f[n] = v.x + dot(v, v);", False),
        ("f[0] = half_of(f[1]);", False),
        ("f[0] = n > 2 ? f[1] : f[2]; if (n) f[3] = 1.0f;", False),
        ("a[(int)f[0]] = 1;", True),
        ("int i = f[0];", True),
        ("a[0] += f[0];", True),
        ("a[as_int(f[0])] = 1;", True),
        ("a[isnan(f[0])] = 1;", True),
        ("a[!f[0]] = 1;", True),
        ("if (f[0] > 1.0f) a[0] = 1;", True),
        ("if (f[0]) a[0] = 1;", True),
        ("while (f[0]) f[0] -= 1.0f;", True),
        ("do f[0] -= 1.0f; while (f[0]);", True),
        ("for (float x = 9.0f; x; x -= 1.0f) a[0] = 1;", True),
        ("f[0] = f[1] && n;", True),
        ("float s[2]; float *p = s; p[n] = f[0];", True),
        ("float s[2]; put(s, f[0]);", True),
        ("float s; *(int *)&s = n;", True),
        ("int e[2]; f[0] = frexp(f[0], e);", True),
        ("struct S s; s.x = f[0];", True),
        ("f[0] = whole(f[1]);", True),
    ],
)
def test_what_may_come_of_floats_is_told(body: str, expected: bool) -> None:
    """Whatever is not plain to see counts as a way out of floating point."""
    source = f"{HELPERS} kernel void k(global int *a, global float *f, int n) {{ {body} }}"
    parsed = parse_source(source)
    assert parsed.is_clean
    analysis = analyse_parsed(parsed, "k")
    assert may_decide(analysis.tree, analysis.function) is expected


def test_facts_are_those_of_following_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many kernels; some of them are spared the trial runs, and not all."""
    answers: list[bool] = []

    def note(tree: SyntaxTree, kernel: Node) -> bool:
        answers.append(may_decide(tree, kernel))
        return answers[-1]

    monkeypatch.setattr(walk, "may_decide", note)
    sources = [one.read_text() for one in FILES] + [BINS % "n", BINS % "(int)sum[0]"]
    found = [read_all(one) for one in sources]
    monkeypatch.setattr(walk, "may_decide", lambda _, __: True)
    assert found == [read_all(one) for one in sources]
    assert set(answers) == {False, True}


def read_all(source: str) -> list[KernelFacts]:
    """Give the facts about all kernels of a source."""
    options = [f"-D{one}=4" for one in ("LX", "LY", "ROWS", "COLUMNS", "CHAINS", "ITEMS")]
    parsed = parse_source(source, options)
    return [analyse_parsed(parsed, name).facts for name in list_kernels(parsed)]


@pytest.mark.parametrize(("place", "sources"), [("(int)sum[0]", ("f",)), ("n", ())])
def test_data_that_comes_out_of_sums_is_still_known(place: str, sources: tuple[str, ...]) -> None:
    """An index made of a sum says which buffer it depends on."""
    facts = analyse_parsed(parse_source(BINS % place), "k").facts
    [store] = [one for one in facts.accesses if one.buffer == "a"]
    assert store.sources == sources
