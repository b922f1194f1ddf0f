from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from kernelcast.records.arguments import Argument, BufferArgument, ElementType, Init, LocalArgument
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.observation import FailureRecord, RunTimes, summarise_runs
from kernelcast.records.problem import (
    DeviceIdentity,
    KernelIdentity,
    digest_arguments,
    digest_text,
)
from support.observations import make_failure, make_launch, make_observation

FLOAT = ElementType("float32")
ZEROS = BufferArgument(element=FLOAT, count=8)
(SAMPLES,) = make_observation(0).samples


def digest(*arguments: Argument) -> str:
    return digest_arguments(arguments, seed=0)


@pytest.mark.parametrize(
    "other",
    [
        [replace(ZEROS, count=9)],
        [replace(ZEROS, init=Init.ONES)],
        [ZEROS, ZEROS],
        [LocalArgument(bytes=8)],
        [],
    ],
)
def test_other_arguments_have_another_digest(other: list[Argument]) -> None:
    """Differs wherever the kernel would see something else."""
    assert digest(*other) != digest(ZEROS)


def test_seeds_count_where_contents_are_random() -> None:
    for init, count in ((Init.ZEROS, 1), (Init.UNIFORM, 2)):
        buffer = replace(ZEROS, init=init)
        assert len({digest_arguments([buffer], seed=seed) for seed in (0, 1)}) == count


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    """Has the same digest for equal files of any name."""
    files = [tmp_path / name for name in ("a.npy", "b.npy")]
    for path in files:
        path.write_bytes(b"content")
    first, second = (replace(ZEROS, init=Init.FILE, path=path) for path in files)
    assert digest(first) == digest(second)
    files[1].write_bytes(b"other")
    assert digest(first) != digest(second)
    files[0].unlink()
    with pytest.raises(InputError, match=r"a\.npy: the buffer's file cannot be read"):
        digest(first)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KernelIdentity(name="", digest="0" * 64), "no name"),
        (lambda: KernelIdentity(name="k", digest="abc"), "kernel digest is 'abc'"),
        (lambda: DeviceIdentity(id=""), "no id"),
        (lambda: replace(make_launch(0), arguments_digest="X" * 64), "arguments digest"),
        (lambda: RunTimes(median_s=0), "took 0 s"),
        (lambda: RunTimes(median_s=1, noise=-0.1), "noise is -0.1"),
        (lambda: RunTimes(median_s=1, durations_s=(1.0, 2.0), run_count=3), "3 runs and 2 times"),
        (lambda: summarise_runs([]), "no runs"),
        (lambda: summarise_runs([0.1, -1.0]), "took -1.0 s"),
        (lambda: replace(SAMPLES, launches=()), "without launches"),
        (lambda: replace(SAMPLES, linear_s=float("inf")), "holds inf s"),
        (lambda: replace(make_observation(0), measured_at=datetime(2026, 1, 1)), "no time zone"),  # noqa: DTZ001 - what is refused
        (lambda: replace(make_failure(0), kind=""), "no kind"),
        (lambda: make_observation(0).sample_run(1), "has 1 sample sets, number 1"),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], message: str) -> None:
    """Says what was given and what was expected."""
    with pytest.raises(InputError, match=message):
        make()


def test_samples_serve_the_linear_model() -> None:
    """Gives the launches with kernel, device and index space, and knows their cost."""
    one = make_observation(3)
    run = one.sample_run()
    assert run.launches == one.samples[0].launches
    assert run.ndrange == one.launch.ndrange
    assert one.samples[0].sampling_s == run.sampling_s
    assert one.samples[0].work_groups == (4, 6)


def test_keys_tell_measurements_and_failures_apart() -> None:
    """Has one key per launch and measurement, and one per launch and kind of failure."""
    one = make_observation(3)
    assert replace(one, runs=summarise_runs([9.0])).key == one.key
    assert replace(one, measurement="again").key != one.key
    launch = one.launch
    assert replace(launch, parameters={}).key == launch.key
    assert replace(launch, device=replace(launch.device, driver="2.0")).key != launch.key
    failure = make_failure(3)
    assert replace(failure, message="other words").key == failure.key
    assert FailureRecord(launch=failure.launch, kind="Other", message="").key != failure.key
    assert digest_text("ab", "c") != digest_text("a", "bc")
    kernels = [
        Kernel(name="k", source=text) for text in ("kernel void k() {}", "kernel void k(){}")
    ]
    kernels.append(replace(kernels[0], build_options=("-w",)))
    assert len({one.digest for one in kernels}) == 3
    assert replace(kernels[0], source_name="other.cl").digest == kernels[0].digest
