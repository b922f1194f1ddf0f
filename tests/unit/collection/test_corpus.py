import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelcast.collection.corpus_problems import (
    CheckOutcome,
    CheckStatus,
    check_on_devices,
    find_difference,
    keep_inputs,
    prepare_launch,
)
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.errors import InputError, KernelRunError
from kernelcast.records.ndrange import NDRange
from kernelcast.training_data.applications import find_kernels
from kernelcast.training_data.reference import Reference
from support.builders import make_description
from support.commands import run_command

(NBODY,) = find_kernels("nbody/nbody")
(DXT,) = find_kernels("dxt_compress/compress")


def test_size_and_local_size_replace_the_usual_ones(tmp_path: Path) -> None:
    """Makes the launch that was asked for, local memory following; refuses what cannot be."""
    problem = prepare_launch(
        NBODY, {NBODY.size.parameter: 2048}, local_size=(32,), cache_folder=tmp_path
    ).problem
    assert problem.ndrange == NDRange(global_size=(2048,), local_size=(32,))
    assert problem.arguments[-1].bytes == 16 * 32
    with pytest.raises(InputError, match="problem file makes it"):
        prepare_launch(NBODY, {}, local_size=(8, 8), cache_folder=tmp_path)
    with pytest.raises(InputError, match="whole numbers"):
        prepare_launch(NBODY, {"BODIES": 64.5}, local_size=(64,), cache_folder=tmp_path)


def test_inputs_are_made_once(tmp_path: Path) -> None:
    """Finds the files of an earlier call again, whatever the local size; leaves nothing else."""
    first = prepare_launch(DXT, {"BLOCKS": 64}, local_size=(64,), cache_folder=tmp_path)
    assert first.inputs_folder is not None
    stamps = {path: path.stat().st_mtime_ns for path in first.inputs_folder.iterdir()}
    again = prepare_launch(DXT, {"BLOCKS": 64}, local_size=(64,), cache_folder=tmp_path)
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    other = prepare_launch(DXT, {"BLOCKS": 128}, local_size=(64,), cache_folder=tmp_path)
    assert other.inputs_folder != first.inputs_folder
    assert len(list((tmp_path / "dxt_compress").iterdir())) == 2


def test_copy_reads_as_the_same_problem(tmp_path: Path) -> None:
    """Writes a folder whose problem file gives the kernel, launch and inputs of the corpus, and
    none where a parameter cannot be."""
    for parameter in ("BODYS=64", "BODIES=64.5"):
        refused = run_command("corpus", "write", "nbody", tmp_path / "no", "--param", parameter)
        assert refused.exit_code == 2
    assert [*tmp_path.rglob("*.yaml")] == []
    result = run_command("corpus", "write", "dxt_compress", tmp_path, "--param", "BLOCKS=128")
    assert result.exit_code == 0, result.output
    copy = read_problem(result.stdout.strip())
    own = prepare_launch(
        DXT, {"BLOCKS": 128}, local_size=(64,), cache_folder=tmp_path / "cache"
    ).problem
    assert replace(copy, arguments=()) == replace(own, arguments=())
    for mine, theirs in zip(copy.arguments, own.arguments, strict=True):
        contents = [np.load(one.path) for one in (mine, theirs) if getattr(one, "path", None)]
        assert not contents or np.array_equal(*contents)
        assert getattr(mine, "count", None) == getattr(theirs, "count", None)
    written = Path(result.stdout.strip()).parent
    assert {path.suffix for path in written.iterdir()} == {".cl", ".npy", ".yaml"}
    # Parameters that follow from others stay formulas.
    boxes = run_command("corpus", "write", "BoxRowsLmem", tmp_path).stdout
    wider = read_problem(boxes.strip(), parameters={"RADIUS": 20})
    assert "-DOUTPUTS=76" in wider.kernel.build_options


@pytest.mark.parametrize(
    ("found", "wanted", "tolerance", "is_fine"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-9], 0.0, False),
        ([1.0, 2.0], [1.0, 2.00001], 1e-4, True),
        ([1e-9, 2.0], [0.0, 2.0], 1e-4, True),
        ([np.nan, 2.0], [1.0, 2.0], 1e-4, False),
        ([np.nan, 2.0], [np.nan, 2.0], 0.0, True),
        ([np.inf, 2.0], [np.inf, 2.0], 1e-4, True),
        ([1, 2], [1, 3], 0.9, False),
        ([1, 2], [1.0, 2.0], 0.9, False),
        ([1, 2], [1, 2, 3], 0.9, False),
    ],
)
def test_comparison(
    found: list[float], wanted: list[float], tolerance: float, is_fine: bool
) -> None:
    """Takes floating point within its tolerance, integers exactly, types and sizes as they are."""
    reference = Reference(expected=lambda *_: {0: np.array(wanted)}, small={}, tolerance=tolerance)
    run = (np.zeros(1),), (np.array(found),)
    assert (find_difference(run, reference, {}) is None) == is_fine


def test_crash_costs_only_the_kernel_that_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goes on behind the kernel that a process died of, in another one."""
    kernels = (*find_kernels("mat_vec_mul"), NBODY)
    asked = []

    def stream(_: object, task: tuple[Any, str], **__: object) -> Iterator[CheckOutcome]:
        asked.append([one.name for one in task[0]])
        for one in task[0]:
            if one.name == "mat_vec_mul/coal1":
                raise KernelRunError("the process died")
            yield CheckOutcome(kernel=one.name, device_id=task[1], status=CheckStatus.PASSED)

    monkeypatch.setattr("kernelcast.collection.corpus_problems.stream_isolated", stream)
    outcomes = {one.kernel: one for one in check_on_devices(kernels, [make_description()])}
    assert [*outcomes] == [one.name for one in kernels]
    failed = outcomes.pop("mat_vec_mul/coal1")
    assert (failed.status, failed.explanation) == (CheckStatus.FAILED, "the process died")
    assert {one.status for one in outcomes.values()} == {CheckStatus.PASSED}
    assert len(asked) == 3


def test_changed_input_is_found() -> None:
    """Complains of a buffer that changed and that the reference does not name."""
    one = np.arange(4)
    run = (one, one, np.int32(4)), (one + 1, one * 2, np.int32(4))
    right = Reference(expected=lambda v, _: {0: v[0] + 1, 1: v[1] * 2}, small={})
    silent = Reference(expected=lambda v, _: {1: v[1] * 2}, small={})
    nothing = Reference(expected=lambda *_: {}, small={})
    assert find_difference(run, right, {}) is None
    assert "argument 0: was changed: " in str(find_difference(run, silent, {}))
    assert find_difference(run, nothing, {}) is not None


_LONG_AGO_S = 10_000


def _make(parameters: dict[str, int], folder: Path) -> dict[str, int]:
    (folder / "x.npy").write_bytes(bytes(parameters["BYTES"]))
    return {"FOUND": parameters["BYTES"] + 1}


def _get(cache: Path, size: int, *, age_s: float = 0.0, most: int = 5_000) -> Path:
    folder, made = keep_inputs(cache, "sums", {"BYTES": size}, b"", _make, most_bytes=most)
    assert made == {"FOUND": size + 1}
    when_s = time.time() - age_s
    os.utime(folder, (when_s, when_s))
    return folder


def test_inputs_used_longest_ago_make_room(tmp_path: Path) -> None:
    """Once all take more than they may; the last use counts, not the making."""
    first = _get(tmp_path, 2_001, age_s=_LONG_AGO_S)
    second = _get(tmp_path, 2_002, age_s=_LONG_AGO_S)
    _get(tmp_path, 2_001)
    newest = _get(tmp_path, 2_003)
    assert [one.is_dir() for one in (first, second, newest)] == [True, False, True]
    # What was just asked for may be about to be read: it stays, however large.
    _get(tmp_path, 2_004, most=1)
    assert first.is_dir()


def test_leftovers_go(tmp_path: Path) -> None:
    """Drops what an error has cut short and what a process left long ago, nothing in the making."""

    def fail(_: object, folder: Path) -> dict[str, int]:
        (folder / "x.npy").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep_inputs(tmp_path, "sums", {"BYTES": 1}, b"", fail, most_bytes=5_000)
    assert list((tmp_path / "sums").iterdir()) == []
    left, busy = tmp_path / "sums" / "making-old", tmp_path / "sums" / "making-new"
    for one in (left, busy):
        one.mkdir()
        (one / "x.npy").touch()
    when_s = time.time() - _LONG_AGO_S
    os.utime(left, (when_s, when_s))
    _get(tmp_path, 1)
    assert not left.is_dir()
    assert busy.is_dir()
