from pathlib import Path

import pytest

from kernelcast.features.loop_nest import Listing
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.cpu_loops import write_program
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.gpu_estimates import configure
from kernelcast.launches.modelling.sources import read_launch_source, record_accesses
from kernelcast.records.errors import InputError
from kernelcast.sampling.loop_benchmark import FLAGS, find_compiler, measure_loop

ROOT = Path(__file__).resolve().parents[2]
LOOPS = ROOT / "examples/loops"
MACHINE = ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler is installed")
def test_every_example_can_be_measured() -> None:
    """Compiles and runs each example loop; processor's time is at most a little above wall time.

    Longer loops take longer: nothing is measured beside them. What does not compile is told.
    """

    def measure(source: str, **constants: int) -> float:
        program = write_program(Listing(source, "<listing>"))
        options = [*FLAGS, *(f"-D{name}={value}" for name, value in constants.items())]
        found = measure_loop(program, options, least_s=2e-3, samples=3)
        assert 0 < found["shortest_s"] <= found["cpu_s"] < 1.5 * found["wall_s"], source
        return float(found["shortest_s"])

    sources = {path.stem: path.read_text(encoding="utf-8") for path in LOOPS.glob("*.c")}
    for source in sources.values():
        measure(source, M=20, N=40)
    short, long = (measure(sources["sum"], N=size) for size in (2000, 64_000))
    assert 8 < long / short < 128
    with pytest.raises(InputError, match="cannot compile the loop"):
        measure("double a[N]; for (;;) a[0] = nothing;", N=4)


@pytest.mark.device
def test_estimates_addresses_that_depend_on_data() -> None:
    """Estimates a sparse product on a CPU and a GPU once its addresses are recorded."""
    small = {"ROWS": 4096, "COLUMNS": 65536, "NNZ": 4_000_000}
    source = read_launch_source(ROOT / "examples/spmv_csr/spmv_csr.yaml", parameters=small)
    machine = find_machine(MACHINE)
    with pytest.raises(InputError, match=r"depends on data in .*: allow samples"):
        estimate_analytically(source.launch(), machine)
    recorded = record_accesses(source)
    found = estimate_analytically(recorded.launch(), machine)
    assert found.model == "cpu"
    assert found.limiters["latency"] > 0
    with pytest.raises(InputError, match="depends on data in row_pointer"):
        configure(source, find_machine("a100"))
    assert configure(recorded, find_machine("a100")).estimate.volumes["L2_to_L1"] > 4 * 4096
    with pytest.raises(InputError, match="depends on data"):
        configure(recorded, find_machine("a100"), (128,))


@pytest.mark.device
def test_leaves_out_what_no_recorded_work_item_came_to(tmp_path: Path) -> None:
    """Models a search whose rare hits go to places that an atomic hands out."""
    (tmp_path / "search.yaml").write_text("""
code: |
  kernel void search(global const int *a, global int *found, global int *count) {
    size_t i = get_global_id(0);
    if (a[i] == -1) found[atomic_inc(count)] = (int)i;
  }
kernel: search
global_size: [65536]
local_size: [64]
args:
  - {buffer: int32, count: 65536, init: ones}
  - {buffer: int32, count: 65536}
  - {buffer: int32, count: 1}
""")
    source = record_accesses(read_launch_source(tmp_path / "search.yaml"))
    found = configure(source, find_machine("a100"))
    assert found.estimate.volumes["L2_to_DRAM"] < 1000
    missing = "no recorded work-item came to found[atomic_inc(count)]"
    assert any(missing in one for one in found.estimate.notes)
