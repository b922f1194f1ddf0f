import pytest

from kernelcast.features.loop_nest import Listing
from kernelcast.launches.modelling.cpu_loops import write_program
from kernelcast.records.errors import InputError
from kernelcast.sampling.loop_benchmark import LoopToRun, measure_loop

LISTING = """
#include <math.h>
/* double hidden[N]; */
const double c0, c1 = fmax(2.0, 1.0);
double a[M][N], b[M][N]; // rows
float s;
for (int j = 0; j < M; ++j)
    for (int i = 0; i < N; ++i)
        a[j][i] = c0 * b[j][i] + c1 * s;
"""


def test_programs_fill_arrays_and_keep_results() -> None:
    """Writes to all pages first, hides scalars from the compiler and uses what is computed."""
    program = write_program(Listing(LISTING, "<listing>"))
    assert "#include <math.h>" in program
    assert "hidden" not in program
    for name in ("a", "b"):
        assert f"static double {name}[M][N]" in program
        assert f"((double *){name})[n]" in program
    assert "double c0 = (double)kc_value;" in program
    assert "double c1 = fmax(2.0, 1.0);" in program
    assert "kc_sink = (double)s;" in program


def test_says_which_compiler_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names the compiler asked for, or what to install."""
    with pytest.raises(InputError, match="no-such-compiler"):
        measure_loop(LoopToRun("", {}, compiler="no-such-compiler"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(InputError, match="install gcc or clang"):
        measure_loop(LoopToRun("", {}))
