from pathlib import Path

import pytest

from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import configure
from kernelcast.launches.modelling.sources import read_launch_source, record_accesses
from kernelcast.records.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
SPMV = ROOT / "examples/spmv_csr/spmv_csr.yaml"
SMALL = {"ROWS": 4096, "COLUMNS": 65536, "NNZ": 4_000_000}


@pytest.mark.device
def test_models_addresses_that_depend_on_data() -> None:
    """Models a sparse product once its addresses are recorded, and counts what was executed."""
    source = read_launch_source(SPMV, parameters=SMALL)
    with pytest.raises(InputError, match="depends on data in row_pointer"):
        configure(source, find_machine("a100"))
    recorded = record_accesses(source)
    found = configure(recorded, find_machine("a100"))
    assert found.estimate.seconds > 0
    assert found.estimate.volumes["L2_to_L1"] > 4 * SMALL["ROWS"]
    with pytest.raises(InputError, match="depends on data"):
        configure(recorded, find_machine("a100"), (128,))


@pytest.mark.device
def test_records_a_launch() -> None:
    """Gives the launch with the addresses of the accesses that depend on data."""
    launch = record_accesses(read_launch_source(SPMV, parameters=SMALL)).launch()
    assert launch.recorded is not None
    unknown = {one.site for one in launch.accesses if one.offset_bytes is None}
    assert unknown <= set(launch.recorded.sites.tolist())
    assert not any("needs recorded addresses" in note for note in launch.notes)


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
