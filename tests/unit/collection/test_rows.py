import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kernelcast.collection import collection
from kernelcast.collection.collection import CollectionOrder, DeviceOutcome, Message, collect
from kernelcast.collection.kernel_task import KernelTask, make_failure, remember_sizes
from kernelcast.collection.settings import CollectionSettings
from kernelcast.records.device import Progress
from kernelcast.records.errors import InputError, KernelRunError, UnknownDeviceError
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation, summarise_runs
from kernelcast.records.problem import (
    DeviceIdentity,
    KernelIdentity,
    LaunchIdentity,
    digest_text,
)
from kernelcast.sampling.plan import SAMPLER
from kernelcast.training_data.applications import CorpusKernel, find_kernels
from kernelcast.training_data.store import Selection, Store, StoreError, open_store
from support.builders import make_description

KERNEL = find_kernels("nbody")[0]
DEVICE = make_description()
ROWS = 4
Child = Callable[[KernelTask], Iterator[Message]]
Collect = Callable[..., DeviceOutcome]


def make_launch(number: int, device_id: str = DEVICE.id) -> LaunchIdentity:
    """Make the identity of a row."""
    return LaunchIdentity(
        kernel=KernelIdentity(
            name=KERNEL.stem, digest=digest_text("kernel"), application=KERNEL.application
        ),
        device=DeviceIdentity(id=device_id, driver=DEVICE.driver),
        ndrange=NDRange(global_size=(64 * number,), local_size=(64,)),
        arguments_digest=digest_text(str(number)),
        parameters={KERNEL.size.parameter: 1000 * number},
    )


def observe(
    task: KernelTask, fails_at: int = 0, error: BaseException | None = None
) -> Iterator[Message]:
    """Measure what is missing, as the child does; may die of a launch that is missing."""
    *_, done = task
    for number in range(1, ROWS + 1):
        launch = make_launch(number)
        yield launch
        if error is not None and number == fails_at and launch.key not in done:
            raise error
        yield "" if launch.key in done else make_row(launch)


def make_row(launch: LaunchIdentity, sampler: int = SAMPLER) -> Observation:
    """Make what the child has measured."""
    return Observation(
        launch=launch, runs=summarise_runs([0.1, 0.2]), versions={"sampler": str(sampler)}
    )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Give an empty store, and a data folder beside it."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    with open_store(tmp_path / "rows.sqlite") as found:
        yield found


@pytest.fixture
def collect_with(monkeypatch: pytest.MonkeyPatch, store: Store) -> Collect:
    """Collect one kernel on one device with a child of our own."""

    def run(child: Child, **options: Any) -> DeviceOutcome:  # noqa: ANN401 - of the order
        monkeypatch.setattr(collection, "stream_isolated", lambda _, task, **__: child(task))
        order = CollectionOrder(
            kernels=(KERNEL,), devices=(DEVICE,), settings=CollectionSettings(), **options
        )
        (on_device,) = collect(order, store).devices
        return on_device

    return run


def test_rows_are_measured_once_with_a_sampler(collect_with: Collect, store: Store) -> None:
    """Samples of another kind than estimates take teach models what is not so."""
    store.add_many([make_row(make_launch(1), SAMPLER - 1), make_row(make_launch(2))])
    for measured in (ROWS - 1, 0):
        outcome = collect_with(observe)
        assert (outcome.measured, outcome.present) == (measured, ROWS - measured)
    assert [one.sampler for one in store.find(Selection())] == [SAMPLER] * ROWS


def test_a_crash_costs_one_row(collect_with: Collect, store: Store) -> None:
    """The launch that kills the process becomes a failure, the others are measured."""
    outcome = collect_with(partial(observe, fails_at=2, error=KernelRunError("signal SIGSEGV")))
    assert (outcome.measured, outcome.present, outcome.kernels) == (ROWS - 1, 0, 1)
    (failure,) = store.failures()
    assert failure.launch.key == make_launch(2).key
    assert "SIGSEGV" in failure.message
    assert outcome.failures == [failure]
    quiet = collect_with(observe)
    assert (quiet.measured, quiet.present) == (0, ROWS)
    retried = collect_with(observe, retries_failures=True)
    assert (retried.measured, store.failures()) == (1, [])


LAUNCH = make_launch(1)


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        (
            [LAUNCH, make_failure(LAUNCH, InputError("no such buffer"))],
            {"failures": [("InputError", "no such buffer")]},
        ),
        ([KernelRunError("does not compile")], {"errors": {KERNEL.name: "does not compile"}}),
        (
            [LAUNCH, "12 work-groups"],
            {"skipped": {KERNEL.name: "12 work-groups"}},
        ),
        # A row that turns out too long is over: what follows it is no failure of its launch.
        (
            [LAUNCH, "9 s", KernelRunError("SIGSEGV")],
            {"skipped": {KERNEL.name: "9 s"}, "errors": {KERNEL.name: "SIGSEGV"}},
        ),
    ],
    ids=["refused row", "no beginning", "small launch", "crash after a skipped row"],
)
def test_what_cannot_be_measured_is_told(
    collect_with: Collect,
    store: Store,
    messages: list[Message | KernelRunError],
    found: dict[str, object],
) -> None:
    """Refused rows are failures, others have a reason; none ends the collection."""

    def child(task: KernelTask) -> Iterator[Message]:
        del task
        for message in messages:
            if isinstance(message, KernelRunError):
                raise message
            yield message

    outcome = collect_with(child)
    failures = [(one.kind, one.message) for one in outcome.failures]
    told = {"failures": failures, "errors": outcome.errors, "skipped": outcome.skipped}
    assert {name: one for name, one in told.items() if one} == found
    assert (outcome.measured, outcome.present, store.count()) == (0, 0, 0)


def test_sizes_of_another_device(collect_with: Collect, store: Store) -> None:
    """Rows have the sizes of the other device's, not those chosen for this one before."""
    asked: list[tuple[int, ...]] = []

    def note(task: KernelTask) -> Iterator[Message]:
        asked.append(task[0].sizes)
        yield from observe(task)

    nothing = collect_with(note, sizes_of="other")
    assert (list(nothing.skipped), asked) == ([KERNEL.name], [])
    collect_with(observe)
    for number in (3, 2):
        launch = make_launch(number, device_id="other")
        store.add(Observation(launch=launch, runs=summarise_runs([0.1])))
    collect_with(note, sizes_of="other")
    assert asked == [(2000, 3000)]


def test_ends_between_rows_when_the_time_is_up(collect_with: Collect, store: Store) -> None:
    """The time budget ends a collection after a row, never in it."""

    def be_slow(task: KernelTask) -> Iterator[Message]:
        for message in observe(task):
            if isinstance(message, Observation):
                time.sleep(0.06)
            yield message

    collect_with(be_slow, budget_s=0.1)
    assert 1 <= store.count() < ROWS


def test_ctrl_c_keeps_what_is_there(collect_with: Collect, store: Store) -> None:
    """An interrupt ends the collection in order."""
    outcome = collect_with(partial(observe, fails_at=3, error=KeyboardInterrupt()))
    assert (outcome.measured, store.count()) == (2, 2)
    assert collect_with(observe).measured == ROWS - 2


def test_a_store_that_fails_ends_it(
    collect_with: Collect, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is the store's error, not the kernel's."""
    monkeypatch.setattr(store, "add", Mock(side_effect=StoreError("the disk is full")))
    with pytest.raises(StoreError, match="full"):
        collect_with(observe)


@pytest.mark.usefixtures("store")
def test_damaged_and_outdated_plans_are_made_anew(tmp_path: Path) -> None:
    """Sizes are only reused for the settings they were chosen for."""

    def remember(found: tuple[int, ...], **settings: int) -> tuple[int, ...]:
        return remember_sizes(DEVICE, KERNEL, CollectionSettings(**settings), lambda: found)

    assert (remember((1, 2)), remember((3,))) == ((1, 2), (1, 2))
    assert remember((4,), sizes=3) == (4,)
    (path,) = tmp_path.rglob("*.json")
    path.write_text("{", encoding="utf-8")
    assert remember((5,), sizes=3) == (5,)


@pytest.mark.parametrize(
    "wrong",
    [{"sizes": 0}, {"runs": 0}, {"shortest_s": 0.5, "longest_s": 0.1}, {"most_noise": 0.0},
     {"multiples": -1}, {"worst_noise": 0.0}, {"local_sizes": 0}],
)  # fmt: skip
def test_refuses_impossible_settings(wrong: dict[str, Any]) -> None:
    """Numbers out of range are refused before anything is measured."""
    with pytest.raises(InputError, match="give"):
        CollectionSettings(**wrong)


KERNELS = tuple(find_kernels("image_filters"))[:3]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Make a client of one worker, a thread with one device on which each kernel ends in its own
    way."""

    def run_job(kernel: CorpusKernel, *others: Any) -> bool:  # noqa: ANN401 - as collect has them
        if kernel is KERNELS[1]:
            raise KernelRunError("it died")
        outcome: DeviceOutcome = others[3]
        outcome.measured += 2
        outcome.kernels += 1
        return kernel is KERNELS[2]

    monkeypatch.setattr(collection, "run_job", run_job)
    monkeypatch.setattr(collection, "list_descriptions", lambda: [DEVICE])
    pool, found = ThreadPoolExecutor(1), Mock()
    found.scheduler_info.return_value = {"workers": {"here": {}}}
    found.run.side_effect = lambda function, *resources, workers: (
        {} if resources else {one: function() for one in workers}
    )
    found.submit.side_effect = lambda function, *arguments, **_: pool.submit(function, *arguments)
    return found


def test_what_workers_measure_is_added_up(client: Mock, tmp_path: Path) -> None:
    """Adds the jobs' outcomes by device; a job that fails is a kernel that is not collected, a
    device that no worker has is unknown."""
    with pytest.raises(UnknownDeviceError):
        collection.find_cluster_devices(client, ("elsewhere",))
    devices = collection.find_cluster_devices(client, (DEVICE.id[:4],))
    assert devices == (DEVICE,)
    assert client.run.call_args.args[1] == {DEVICE.id: 1, collection.MEASUREMENT: 1}
    told: list[Progress] = []
    with open_store(tmp_path / "rows.sqlite") as store:
        order = CollectionOrder(kernels=KERNELS, devices=devices, settings=CollectionSettings())
        outcome = collection.collect_on_cluster(order, store, client, report=told.append)
    (found,) = outcome.devices
    assert (found.kernels, found.measured) == (2, 4)
    assert found.errors == {KERNELS[1].name: "it died"}
    assert outcome.is_out_of_time
    assert [(one.done, one.total) for one in told] == [(1, 3), (2, 3), (3, 3)]
    assert told[-1].rows == 4
