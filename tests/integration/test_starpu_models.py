"""StarPU's own tools and library read what is exported."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelcast.scheduling.starpu.codelets import (
    DataKind,
    TaskData,
    footprint_of_data,
    footprint_of_size_base,
    read_codelets,
)
from kernelcast.scheduling.starpu.models import (
    CodeletModel,
    Entry,
    Worker,
    WorkerKind,
    parse_worker,
    save_model,
)

ROOT = Path(__file__).resolve().parents[2]
HOST = "node1"
DISPLAY = shutil.which("starpu_perfmodel_display")
PACKAGE = "starpu-1.3"

needs_tools = pytest.mark.skipif(DISPLAY is None, reason="needs Debian's starpu-tools")


def _has_library() -> bool:
    if shutil.which("pkg-config") is None or shutil.which("gcc") is None:
        return False
    asked = subprocess.run(["pkg-config", "--exists", PACKAGE], check=False)
    return asked.returncode == 0


needs_library = pytest.mark.skipif(
    not _has_library(), reason="needs gcc, pkg-config and Debian's libstarpu-dev"
)


def display(folder: Path, *words: str) -> str:
    """Run StarPU's tool on a folder of models; give what it prints."""
    assert DISPLAY is not None
    environment = {**os.environ, "STARPU_PERF_MODEL_DIR": str(folder), "STARPU_HOSTNAME": HOST,
                   "STARPU_SILENT": "1"}  # fmt: skip
    done = subprocess.run(
        [DISPLAY, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_entries(count: int) -> tuple[Entry, ...]:
    """Make times that grow with the size."""
    return tuple(
        Entry(footprint=0xABC00 + n, size_bytes=4096 * 2**n, seconds=1.5e-3 * 2**n + 1e-4,
              deviation_s=1e-5, flops=1e6)
        for n in range(count)
    )  # fmt: skip


@needs_tools
def test_every_file_is_read(tmp_path: Path) -> None:
    """Histories and both regressions, on every kind of worker and implementation."""
    texts = ("cpu", "cpu_impl2", "opencl0", "opencl3_impl1", "cuda1")
    workers = {parse_worker(one): make_entries(4) for one in texts}
    models = [
        CodeletModel(symbol="many_workers", entries=workers),
        CodeletModel(symbol="single_size", entries={parse_worker("opencl0"): make_entries(1)}),
        CodeletModel(symbol="two_sizes", entries={parse_worker("cpu"): make_entries(2)}),
    ]
    for one in models:
        save_model(one, tmp_path, host=HOST)
    listed = display(tmp_path, "-l")
    for one in models:
        assert f"<{one.symbol}.{HOST}>" in listed
        shown = display(tmp_path, "-s", one.symbol)
        for worker, entries in one.entries.items():
            assert f"performance model for {worker}" in shown
            for entry in entries:
                assert f"{entry.footprint:08x}" in shown
                assert f"{entry.seconds * 1e6:e}" in shown
    # time = a * size + c: a in microseconds per byte, c of 100 us
    for parameter, value in (("a", 1500 / 4096), ("b", 1.0), ("c", 100.0)):
        lines = display(tmp_path, "-s", "many_workers", "-p", parameter).splitlines()
        place = next(n for n, one in enumerate(lines) if "opencl0_impl0" in one)
        assert float(lines[place + 1]) == pytest.approx(value, rel=1e-3)


def run_probe(source: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Compile a program against StarPU and run it with the models of a folder."""
    program = folder / "probe"
    (folder / "probe.c").write_text(source)
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", PACKAGE], capture_output=True, text=True, check=True
    ).stdout.split()
    subprocess.run(
        ["gcc", "-o", program, folder / "probe.c", *flags], check=True, capture_output=True
    )
    environment = {
        **os.environ, "STARPU_PERF_MODEL_DIR": str(folder), "STARPU_HOSTNAME": HOST,
        "STARPU_NCUDA": "0", "STARPU_SILENT": "1", **settings,
    }  # fmt: skip
    return subprocess.run([program], env=environment, capture_output=True, text=True, check=False)


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


@needs_library
def test_starpu_finds_the_entries(tmp_path: Path) -> None:
    """Its footprints are ours, and each type of model expects what was exported."""
    data = [
        TaskData(kind=DataKind.VECTOR, counts=(100,), element_bytes=4),
        TaskData(kind=DataKind.MATRIX, counts=(5, 7), element_bytes=4),
        TaskData(kind=DataKind.BLOCK, counts=(3, 5, 7), element_bytes=4),
        TaskData(kind=DataKind.VARIABLE, counts=(), element_bytes=40),
    ]
    footprint, size = footprint_of_data(data), sum(one.bytes for one in data)
    cpu = Worker(kind=WorkerKind.CPU)
    entries = tuple(
        Entry(footprint=footprint + n, size_bytes=size * 2**n, seconds=2e-3 * 2**n)
        for n in range(4)
    )
    based = Entry(footprint=footprint_of_size_base(4096), size_bytes=4096, seconds=5e-3)
    save_model(CodeletModel(symbol="probe", entries={cpu: entries}), tmp_path, host=HOST)
    save_model(CodeletModel(symbol="based", entries={cpu: (based,)}), tmp_path, host=HOST)
    done = run_probe(PROBE, tmp_path, STARPU_NCPU="1", STARPU_NOPENCL="0")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert {row[0] for row in rows} == {f"{footprint:08x}"}
    assert [row[1] for row in rows] == [f"{footprint:08x}"] * 3 + [f"{based.footprint:08x}"]
    assert [float(row[2]) for row in rows] == pytest.approx([2000, 2000, 2000, 5000], rel=1e-4)


MOVING_PROBE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <starpu.h>
enum { N = 1 << 24 };
static struct starpu_perfmodel model = {.type = STARPU_HISTORY_BASED, .symbol = "moved"};
static void run_on_cpu(void *buffers[], void *argument) { (void)buffers; *(int *)argument = 0; }
static void run_on_opencl(void *buffers[], void *argument) { (void)buffers; *(int *)argument = 1; }
static struct starpu_codelet codelet = {
    .cpu_funcs = {run_on_cpu}, .opencl_funcs = {run_on_opencl}, .nbuffers = 2, .model = &model,
    .modes = {STARPU_R, STARPU_W}};
int main(void)
{
    if (starpu_init(NULL)) return 77;
    int opencl = starpu_worker_get_by_type(STARPU_OPENCL_WORKER, 0);
    int cpu = starpu_worker_get_by_type(STARPU_CPU_WORKER, 0);
    if (opencl < 0 || cpu < 0) return 77;
    starpu_data_handle_t handles[2];
    for (int b = 0; b < 2; ++b)
        starpu_vector_data_register(&handles[b], STARPU_MAIN_RAM, (uintptr_t)calloc(N, 4), N, 4);
    int place = -1;
    struct starpu_task *task = starpu_task_create();
    task->cl = &codelet;
    task->cl_arg = &place;
    for (int b = 0; b < 2; ++b) task->handles[b] = handles[b];
    unsigned node = starpu_worker_get_memory_node(opencl);
    struct starpu_perfmodel_arch *arch = starpu_worker_get_perf_archtype(opencl, 0);
    printf("%.4f %.4f %.4f %.4f\n", starpu_task_expected_length(task, arch, 0),
           starpu_task_expected_data_transfer_time_for(task, opencl),
           starpu_task_expected_data_transfer_time_for(task, cpu),
           starpu_transfer_predict(STARPU_MAIN_RAM, node, (size_t)N * 4));
    task->synchronous = 1;
    if (starpu_task_submit(task)) return 77;
    printf("%s\n", place < 0 ? "nowhere" : place ? "opencl" : "cpu");
    for (int b = 0; b < 2; ++b) starpu_data_unregister(handles[b]);
    starpu_shutdown();
    return 0;
}
"""
NO_WORKERS = 77
"""What the probe ends with where StarPU finds no OpenCL device to work on."""


@needs_library
@pytest.mark.device
@pytest.mark.parametrize(
    ("scheduler", "beta", "lead", "place"),
    [
        ("dm", 1, 0.5, "opencl"),  # counts no transfers
        ("dmda", 0, 0.5, "cpu"),  # counts them once
        ("dmda", 0, 1.5, "opencl"),
        ("dmda", 1, 1.5, "cpu"),  # and by default a second time, as a price
    ],
)
def test_starpu_adds_transfers_to_what_is_exported(
    tmp_path: Path, scheduler: str, beta: int, lead: float, place: str
) -> None:
    """It measures the bus by itself, for data that are read; the exported time stays the kernel's.

    The kernel takes `lead` times as long less on the OpenCL device as its data take to get there.
    """
    save_moved(tmp_path, cpu_s=1e-2, opencl_s=1e-2)
    bus_s = predict_and_run(tmp_path, scheduler, beta)[1]
    save_moved(tmp_path, cpu_s=1e-2 + lead * bus_s, opencl_s=1e-2)
    kernel_s, to_opencl_s, to_cpu_s, read_s, chosen = predict_and_run(tmp_path, scheduler, beta)
    assert kernel_s == pytest.approx(1e-2)
    assert to_opencl_s == pytest.approx(bus_s)
    assert to_opencl_s == pytest.approx(read_s)
    assert to_cpu_s == 0
    assert chosen == place


def save_moved(folder: Path, *, cpu_s: float, opencl_s: float) -> None:
    """Write what the probe's task takes on both workers."""
    data = TaskData(kind=DataKind.VECTOR, counts=(2**24,), element_bytes=4)
    footprint = footprint_of_data([data, data])
    entries = {
        parse_worker(worker): (
            Entry(footprint=footprint, size_bytes=2 * data.bytes, seconds=seconds),
        )
        for worker, seconds in (("cpu", cpu_s), ("opencl0", opencl_s))
    }
    save_model(CodeletModel(symbol="moved", entries=entries), folder, host=HOST)


def predict_and_run(
    folder: Path, scheduler: str, beta: int
) -> tuple[float, float, float, float, str]:
    """Give what StarPU predicts, in seconds, and where it runs the task."""
    done = run_probe(
        MOVING_PROBE, folder, STARPU_SCHED=scheduler, STARPU_SCHED_BETA=str(beta),
        STARPU_NCPU="1", STARPU_NOPENCL="1", STARPU_OPENCL_ON_CPUS="1",
    )  # fmt: skip
    if done.returncode == NO_WORKERS:
        pytest.skip("StarPU finds no OpenCL device beside a CPU core")
    assert done.returncode == 0, done.stderr
    predicted, chosen = done.stdout.splitlines()
    kernel, to_opencl, to_cpu, bus = (1e-6 * float(one) for one in predicted.split())
    return kernel, to_opencl, to_cpu, bus, chosen


def test_the_examples_codelets_can_be_read() -> None:
    """Three codelets, each for an OpenCL and a CPU worker, at three sizes."""
    codelets = read_codelets(ROOT / "examples" / "starpu" / "kernels" / "codelets.yaml")
    assert [one.symbol for one in codelets] == ["kc_horner", "kc_matmul", "kc_stencil"]
    for one in codelets:
        assert [str(place.worker) for place in one.workers] == ["opencl0_impl0", "cpu0_impl0"]
        assert len({size.footprint for size in one.sizes}) == len(one.sizes) == 3
