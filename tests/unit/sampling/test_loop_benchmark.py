import pytest

from kernelcast.records.errors import InputError
from kernelcast.sampling.loop_benchmark import LoopMeasurement, LoopToRun, measure_loop
from kernelcast.sampling.loop_benchmark.listing import take_apart
from kernelcast.sampling.loop_benchmark.measuring import write_program

LISTING = """
#include <math.h>
/* double hidden[N]; */
const double c0, c1 = 2.0;
double a[M][N], b[M][N]; // rows
float s;
for (int j = 0; j < M; ++j)
    for (int i = 0; i < N; ++i)
        a[j][i] = c0 * b[j][i] + c1 * s;
"""


def test_takes_listings_apart() -> None:
    """Separates directives, arrays, scalars and the loop; comments are gone."""
    found = take_apart(LISTING)
    assert found.directives == ("#include <math.h>",)
    assert [(one.name, one.dimensions) for one in found.arrays] == [
        ("a", "[M][N]"),
        ("b", "[M][N]"),
    ]
    assert [(one.name, one.type_name, one.value) for one in found.scalars] == [
        ("c0", "double", ""), ("c1", "double", "2.0"), ("s", "float", ""),
    ]  # fmt: skip
    assert found.loop.startswith("for (int j")


def test_programs_fill_arrays_and_keep_results() -> None:
    """Writes to all pages first, and uses what the loop computes."""
    program = write_program(take_apart(LISTING))
    assert "#include <math.h>" in program
    assert "((double *)a)[n]" in program
    assert "kc_sink = (double)s;" in program
    assert "double c1 = 2.0;" in program


@pytest.mark.parametrize(
    ("source", "complaint"),
    [("double a[N];", "no loop"), ("work(); for (;;) ;", "declares no array"),
     ("double *p; for (;;) ;", "no declaration")],
)  # fmt: skip
def test_refuses_what_it_cannot_run(source: str, complaint: str) -> None:
    """Says what stands where only declarations may."""
    with pytest.raises(InputError, match=complaint):
        take_apart(source)


def test_refuses_an_unknown_compiler() -> None:
    """Names the compiler that is not there."""
    with pytest.raises(InputError, match="no-such-compiler"):
        measure_loop(LoopToRun(source=LISTING, constants={}, compiler="no-such-compiler"))


def test_medians_and_shortest_times() -> None:
    """Takes the processor's time, for other programs do not add to it."""
    both = LoopMeasurement(wall_s=(3.0, 2.0, 9.0), cpu_s=(2.5, 1.5, 2.0), compiler="cc")
    assert (both.seconds, both.cpu_seconds, both.shortest_s) == (3.0, 2.0, 1.5)


def test_says_what_to_install_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the compilers that it has looked for."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(InputError, match="install gcc or clang"):
        measure_loop(LoopToRun(source=LISTING, constants={}))
