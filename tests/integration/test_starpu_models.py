"""StarPU's own tools and library read what is exported."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelcast.scheduling.starpu import (
    TaskSize,
    Worker,
    WorkerKind,
    footprint_of_size_base,
    parse_worker,
    read_codelets,
    save_model,
)

ROOT = Path(__file__).resolve().parents[2]
HOST = "node1"
DISPLAY = shutil.which("starpu_perfmodel_display")
PACKAGE = "starpu-1.3"

needs_tools = pytest.mark.skipif(DISPLAY is None, reason="needs Debian's starpu-tools")
needs_library = pytest.mark.skipif(
    shutil.which("gcc") is None or not shutil.which("pkg-config")
    or subprocess.run(["pkg-config", "--exists", PACKAGE], check=False).returncode != 0,
    reason="needs gcc, pkg-config and Debian's libstarpu-dev",
)  # fmt: skip
SETTINGS = {"STARPU_HOSTNAME": HOST, "STARPU_SILENT": "1", "STARPU_NCUDA": "0",
            "STARPU_NCPU": "1", "STARPU_NOPENCL": "0"}  # fmt: skip


def run(folder: Path, *command: str | Path) -> str:
    """Run a program of StarPU on a folder of models; give what it prints."""
    environment = {**os.environ, **SETTINGS, "STARPU_PERF_MODEL_DIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_entry(
    symbol: str, worker: Worker, footprint: int, size_bytes: int, seconds: float
) -> TaskSize:
    """Make a time of a codelet's size on a worker."""
    return TaskSize(
        symbol=symbol, worker=worker, parameters={}, footprint=footprint, size_bytes=size_bytes,
        flops=1e6, seconds=seconds, deviation_s=1e-5, origin="given",
    )  # fmt: skip


def make_entries(symbol: str, count: int, *workers: str) -> list[TaskSize]:
    """Make times that grow with the size."""
    return [
        make_entry(symbol, parse_worker(one), 0xABC00 + n, 4096 * 2**n, 1.5e-3 * 2**n + 1e-4)
        for one in workers
        for n in range(count)
    ]


@needs_tools
def test_every_file_is_read(tmp_path: Path) -> None:
    """Histories and both regressions, on every kind of worker and implementation."""
    texts = ("cpu", "cpu_impl2", "opencl0", "opencl3_impl1", "cuda1")
    models = [
        make_entries("many_workers", 4, *texts),
        make_entries("single_size", 1, "opencl0"),
        make_entries("two_sizes", 2, "cpu"),
    ]
    assert DISPLAY is not None
    for one in models:
        save_model(one, tmp_path, host=HOST)
    listed = run(tmp_path, DISPLAY, "-l")
    for one in models:
        symbol = one[0].symbol
        assert f"<{symbol}.{HOST}>" in listed
        shown = run(tmp_path, DISPLAY, "-s", symbol)
        for time in one:
            assert f"performance model for {time.worker}" in shown
            assert f"{time.footprint:08x}" in shown
            assert f"{time.seconds * 1e6:e}" in shown
    # time = a * size + c: a in microseconds per byte, c of 100 us
    for parameter, value in (("a", 1500 / 4096), ("b", 1.0), ("c", 100.0)):
        lines = run(tmp_path, DISPLAY, "-s", "many_workers", "-p", parameter).splitlines()
        place = next(n for n, one in enumerate(lines) if "opencl0_impl0" in one)
        assert float(lines[place + 1]) == pytest.approx(value, rel=1e-3)


PROBE = r"""
#include <stdio.h>
#include <starpu.h>
static struct starpu_perfmodel history = {.type = STARPU_HISTORY_BASED, .symbol = "probe"};
static struct starpu_perfmodel linear = {.type = STARPU_REGRESSION_BASED, .symbol = "probe"};
static struct starpu_perfmodel curve = {.type = STARPU_NL_REGRESSION_BASED, .symbol = "probe"};
static size_t base(struct starpu_task *task, unsigned n) { (void)task; (void)n; return 4096; }
static struct starpu_perfmodel based = {
    .type = STARPU_HISTORY_BASED, .symbol = "based", .size_base = base};
static void run(void *buffers[], void *argument) { (void)buffers; (void)argument; }
int main(void)
{
    static float data[3 * 5 * 7];
    starpu_data_handle_t handles[4];
    if (starpu_init(NULL)) return 77;
    starpu_vector_data_register(&handles[0], STARPU_MAIN_RAM, (uintptr_t)data, 100, 4);
    starpu_matrix_data_register(&handles[1], STARPU_MAIN_RAM, (uintptr_t)data, 5, 5, 7, 4);
    starpu_block_data_register(&handles[2], STARPU_MAIN_RAM, (uintptr_t)data, 3, 15, 3, 5, 7, 4);
    starpu_variable_data_register(&handles[3], STARPU_MAIN_RAM, (uintptr_t)data, 40);
    struct starpu_perfmodel *models[] = {&history, &linear, &curve, &based};
    struct starpu_perfmodel_arch *arch = starpu_worker_get_perf_archtype(0, 0);
    for (int i = 0; i < 4; ++i) {
        struct starpu_codelet codelet = {.cpu_funcs = {run}, .nbuffers = 4, .model = models[i],
            .modes = {STARPU_R, STARPU_R, STARPU_R, STARPU_W}};
        struct starpu_task *task = starpu_task_create();
        task->cl = &codelet;
        for (int b = 0; b < 4; ++b) task->handles[b] = handles[b];
        printf("%08x %08x %.4f\n", starpu_task_data_footprint(task),
               starpu_task_footprint(models[i], task, arch, 0),
               starpu_task_expected_length(task, arch, 0));
        task->destroy = 0;
        starpu_task_destroy(task);
    }
    for (int b = 0; b < 4; ++b) starpu_data_unregister(handles[b]);
    starpu_shutdown();
    return 0;
}
"""


CODELETS = """
codelets:
  probe:
    data:
      - {vector: 100, element_bytes: 4}
      - {matrix: [5, 7], element_bytes: 4}
      - {block: [3, 5, 7], element_bytes: 4}
      - {variable: 40}
    sizes: [{N: 1}]
    workers: {cpu: }
"""


@needs_library
def test_starpu_finds_the_entries(tmp_path: Path) -> None:
    """Its footprints are ours, and each type of model expects what was exported."""
    (tmp_path / "codelets.yaml").write_text(CODELETS)
    [(told,)] = read_codelets(tmp_path / "codelets.yaml").values()
    footprint, size = told.footprint, told.size_bytes
    cpu = Worker(kind=WorkerKind.CPU)
    entries = [make_entry("probe", cpu, footprint + n, size * 2**n, 2e-3 * 2**n) for n in range(4)]
    based = footprint_of_size_base(4096)
    save_model(entries, tmp_path, host=HOST)
    save_model([make_entry("based", cpu, based, 4096, 5e-3)], tmp_path, host=HOST)
    source, program = tmp_path / "probe.c", tmp_path / "probe"
    source.write_text(PROBE)
    flags = run(tmp_path, "pkg-config", "--cflags", "--libs", PACKAGE).split()
    run(tmp_path, "gcc", "-o", program, source, *flags)
    rows = [line.split() for line in run(tmp_path, program).splitlines()]
    assert {row[0] for row in rows} == {f"{footprint:08x}"}
    assert [row[1] for row in rows] == [f"{footprint:08x}"] * 3 + [f"{based:08x}"]
    assert [float(row[2]) for row in rows] == pytest.approx([2000, 2000, 2000, 5000], rel=1e-4)


def test_the_examples_codelets_can_be_read() -> None:
    """Three codelets, each for an OpenCL and a CPU worker, at three sizes."""
    codelets = read_codelets(ROOT / "examples" / "starpu" / "kernels" / "codelets.yaml")
    assert [*codelets] == ["kc_horner", "kc_matmul", "kc_stencil"]
    for asked in codelets.values():
        assert {str(one.worker) for one in asked} == {"opencl0_impl0", "cpu0_impl0"}
        assert len({one.footprint for one in asked}) == 3
