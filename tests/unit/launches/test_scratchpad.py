from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from kernelcast.analytic.scratchpad import (
    Direction,
    ScratchpadKernel,
    ScratchpadMachine,
    model_kernel,
)
from kernelcast.launches.modelling.scratchpad import (
    derive_scratchpad_kernel,
    find_scratchpad,
    read_scratchpad_kernel,
)
from kernelcast.records.errors import (
    InputError,
    MachineFileError,
    ProblemFileError,
    UnknownMachineError,
)
from support.problems import EXAMPLES, buffer_of, number_of, read_example, write_problem

TEMPLATE = EXAMPLES / "scratchpad/machines/template.yaml"
SW26010 = find_scratchpad("SW26010")
MACHINE_KEYS = {"schema", *(one.name for one in fields(ScratchpadMachine))}
STAGED = """kernel void k(global const float *a, global float *b, global const int *index, int n) {
  local float tile[64];
  const int lane = get_local_id(0);
  float sum = 0.0f;
  for (int start = 0; start < n; start += 64) {
    tile[lane] = a[start + lane];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < 64; ++j) sum += tile[j] * sqrt(tile[j]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  b[index[get_global_id(0)]] = sum; }"""
COPIED = """kernel void k(global const float *a, global float *b, global int *index, int n) {
  local float tile[64];
  event_t done = async_work_group_copy(tile, a, 64, 0);
  wait_group_events(1, &done);
  b[get_global_id(0)] = tile[get_local_id(0)] * n; }"""


def derive(code: str, **options: float) -> ScratchpadKernel:
    """Derive the scratchpad kernel of 128 work-groups of 64 work-items."""
    floats, indices = buffer_of("float32", 8192), buffer_of("int32", 8192)
    problem = write_problem(code, floats, floats, indices, number_of(1024), items=(8192,))
    return derive_scratchpad_kernel(problem, SW26010, **options)  # type: ignore[arg-type]


def test_scratchpad_kernels_are_read(tmp_path: Path) -> None:
    """Computes parameters and values from the number of active CPEs, the file's or the given; reads
    copies of several arrays as one request, strided ones with their chunks."""
    path = tmp_path / "kernel.yaml"
    path.write_text(
        "active_cpes: 32\nparameters: {all: 6400, own: '{all} // {active_cpes}'}\n"
        "dma: [{direction: in, bytes: '{own}', count: 2}]\n"
        "gload: [{name: g, bytes: 8, count: '{own} / 100'}]\n",
    )
    assert read_scratchpad_kernel(path).dma[0].bytes == 200
    halved = read_scratchpad_kernel(path, active_cpes=64, parameters={"all": 12800})
    assert (halved.active_cpes, halved.dma[0].bytes, halved.gloads[0].count) == (64, 200, 2)
    path.write_text(
        "dma:\n  - direction: out\n    copies:\n      - {bytes: 512}\n"
        "      - {bytes: 1024, chunk_bytes: 128}\n",
    )
    found = model_kernel(read_scratchpad_kernel(path), SW26010)
    assert found.dma.requests == 1
    assert found.dma.average_mrt == 2 + 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dma: [{direction: sideways, bytes: 8}]", r"dma\[0\].direction: expected one of in"),
        ("dma: [{direction: in}]", "either `bytes`, or `copies`"),
        ("dma: [{direction: in, bytes: -8}]", "above 0, found -8"),
        ("dma: [{direction: in, bytes: 8, chunk_bytes: 16}]", "chunks no larger than the copy"),
        ("compute: {}", "no DMA or Gload request"),
        ("parameters: {n: 1}\ncompute: {floating: '{m}'}", r"{m} is no parameter"),
        ("compute: {floating: 1}\naverage_ilp: 0.5", "expected both at least 1"),
        ("", "is empty"),
    ],
)
def test_wrong_files_are_refused_with_their_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "kernel.yaml"
    path.write_text(text)
    with pytest.raises(ProblemFileError, match=rf"kernel.yaml:[12]: .*{words}"):
        read_scratchpad_kernel(path)


def test_a_machine_of_ones_own_can_be_used(tmp_path: Path) -> None:
    """Reads a filled template, with and without origins; refuses an empty one."""
    assert set(yaml.safe_load(TEMPLATE.read_text())) == MACHINE_KEYS
    with pytest.raises(MachineFileError, match="found nothing"):
        find_scratchpad(TEMPLATE)
    path = tmp_path / "mine.yaml"
    values = dict.fromkeys(MACHINE_KEYS, 100) | {
        "schema": "kernelcast-scratchpad-1", "id": "mine", "name": "Mine",
        "clock_hz": {"value": 1e9, "origin": "data sheet"}, "latencies_cycles": {"vector": 2},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(values))
    found = find_scratchpad(str(path))
    assert (found.clock_hz, found.latencies_cycles) == (1e9, {"vector": 2})
    with pytest.raises(UnknownMachineError, match="sw26010"):
        find_scratchpad("cell")


def test_staging_becomes_dma() -> None:
    """Takes the copy to the tile for a DMA request of the work-group, all else for Gloads."""
    found = derive(STAGED, average_ilp=2.0)
    assert (found.active_cpes, found.average_ilp) == (64, 2.0)
    [request] = found.dma
    assert request.direction is Direction.IN
    assert request.bytes == 256
    assert request.count == 2 * 16  # two work-groups a CPE, 1024 / 64 tiles
    assert {one.bytes for one in found.gloads} == {4}
    assert sum(one.count for one in found.gloads) == 2 * 2 * 64  # index and b
    items = 2 * 64
    assert found.compute["div_sqrt"] == items * 1024
    # Local memory without the DMA's stores.
    assert found.compute["floating"] == found.compute["spm"] == items * 2 * 1024
    assert not any("average ILP" in one for one in found.notes)
    half = derive(STAGED, active_cpes=32)
    assert sum(one.count for one in half.gloads) == 2 * 2 * 2 * 64


def test_asynchronous_copies_are_requests() -> None:
    """Takes async_work_group_copy for one copy of all that it moves."""
    copy, stored = derive(COPIED).dma
    assert (copy.direction, stored.direction) == (Direction.IN, Direction.OUT)
    assert copy.copies[0].bytes == 256
    with pytest.raises(InputError, match="a scratchpad of SW26010 holds 65,536"):
        derive(STAGED.replace("tile[64]", "tile[65536]"))


def test_tiles_of_a_matrix_are_strided_requests() -> None:
    """Copies both tiles of a matrix product in one request, a chunk per row."""
    problem = read_example("matmul_tiled")
    [request] = derive_scratchpad_kernel(problem, SW26010).dma
    assert [(one.bytes, one.chunk_bytes) for one in request.copies] == [(1024, 64), (4096, 256)]
