"""Runs ``kernelcast collect``."""

from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from kernelcast.cli.progress_bar import progress_bar
from kernelcast.cli.terminal import ExitStatus, complain, make_table, show, show_json, show_line
from kernelcast.collection.cluster import (
    collect_on_cluster,
    find_cluster_devices,
)
from kernelcast.collection.collection import CollectionOrder, collect
from kernelcast.collection.kernel_rows import RowStorage
from kernelcast.collection.progress import CollectionOutcome, CollectionProgress, DeviceOutcome
from kernelcast.collection.settings import CollectionSettings
from kernelcast.collection.sizes import SizePlans
from kernelcast.launches.data_folder import data_folder
from kernelcast.launches.data_store import open_data_store
from kernelcast.launches.devices import choose_devices
from kernelcast.records.device import DeviceDescription
from kernelcast.reports.plain import to_plain
from kernelcast.sampling.device_ids import match_device_id
from kernelcast.training_data.applications import CorpusKernel, find_kernels
from kernelcast.training_data.store import Selection, Store
from kernelcast.training_data.summary import summarise_store
from kernelcast.workers.cluster import connect

# Another device may take this many times as long at the same size.
_TOO_LONG = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectRequest:
    """The command line of ``kernelcast collect``; fields are its options."""

    device_ids: tuple[str, ...]
    patterns: tuple[str, ...]
    settings: CollectionSettings
    sizes_of: str | None
    budget_s: float | None
    retries_failures: bool
    place: str | None
    scheduler: str | None
    as_json: bool

    def kernels(self) -> tuple[CorpusKernel, ...]:
        """Give the kernels asked for, each once."""
        return find_kernels(*self.patterns)

    def order(self, devices: tuple[DeviceDescription, ...], store: Store) -> CollectionOrder:
        """Give what is to be collected."""
        sizes_of, settings = self.sizes_of, self.settings
        if sizes_of is not None:
            settings = replace(settings, too_long=_TOO_LONG)
            known = [one.group for one in summarise_store(store, Selection())]
            sizes_of = match_device_id(sizes_of, known)
        return CollectionOrder(
            kernels=self.kernels(),
            devices=devices,
            settings=settings,
            retries_failures=self.retries_failures,
            sizes_of=sizes_of,
            budget_s=self.budget_s,
        )


def run_collection(request: CollectRequest) -> ExitStatus:
    """Collect, show what it has come to, and give the exit status."""
    outcome = _collect(request)
    for complaint in list_complaints(outcome):
        complain(complaint)
    if request.as_json:
        show_json(outcome_to_json(outcome))
    else:
        show(make_summary(outcome))
        for line in list_left_out(outcome):
            show_line(line)
        if outcome.is_out_of_time:
            show_line("the time budget is spent; the same command goes on where this one ended")
    return _status_of(outcome)


def _collect(request: CollectRequest) -> CollectionOutcome:
    request.kernels()  # a wrong pattern is told before anything is opened
    with (
        open_data_store(request.place) as store,
        progress_bar(is_wanted=not request.as_json) as tell,
    ):

        def report(progress: CollectionProgress) -> None:
            tell(progress.done, progress.total, _describe(progress), progress.remaining_s)

        if request.scheduler is not None:
            with connect(request.scheduler) as client:
                devices = find_cluster_devices(client, request.device_ids)
                return collect_on_cluster(
                    request.order(devices, store), store, client, report=report
                )
        folder = data_folder()
        place = RowStorage(
            store=store,
            plans=SizePlans(folder=folder / "collection"),
            cache_folder=folder / "corpus",
        )
        order = request.order(tuple(choose_devices(request.device_ids)), store)
        return collect(order, place, report=report)


def _describe(progress: CollectionProgress) -> str:
    return f"{progress.kernel}: {progress.stage} ({progress.device_id}, {progress.rows} rows)"


def _status_of(outcome: CollectionOutcome) -> ExitStatus:
    if outcome.is_interrupted:
        return ExitStatus.INTERRUPTED
    failed = any(one.failures or one.errors for one in outcome.devices)
    return ExitStatus.FAILED if failed else ExitStatus.ANSWERED


def make_summary(outcome: CollectionOutcome) -> Table:
    """Make a table with a line per device."""
    titles = ("kernels", "rows measured", "there already", "disturbed", "failed", "left out")
    table = make_table("device", *titles, right=titles)
    for one in outcome.devices:
        numbers = (
            one.kernels,
            one.measured,
            one.present,
            one.disturbed,
            len(one.failures) + len(one.errors),
            len(one.skipped),
        )
        table.add_row(one.device_id, *(f"{number:,}" for number in numbers))
    return table


def outcome_to_json(outcome: CollectionOutcome) -> list[dict[str, Any]]:
    """Give an object per device."""
    return [_device_to_json(one) for one in outcome.devices]


def list_complaints(outcome: CollectionOutcome) -> list[str]:
    """Give a text per kernel or launch that failed."""
    return [
        complaint
        for one in outcome.devices
        for complaint in (
            *(f"{one.device_id}: {name}: {why}" for name, why in one.errors.items()),
            *(
                f"{failure.launch.kernel.label} {dict(failure.launch.parameters)}: "
                f"{failure.message}"
                for failure in one.failures
            ),
        )
    ]


def list_left_out(outcome: CollectionOutcome) -> list[str]:
    """Give a text per kernel that was left out, or has rows that were, with the reason."""
    return [
        f"{one.device_id}: {name} left out: {why}"
        for one in outcome.devices
        for name, why in one.skipped.items()
    ]


def _device_to_json(one: DeviceOutcome) -> dict[str, Any]:
    return {
        **to_plain(replace(one, failures=[])),
        "failures": [
            {
                "kernel": failure.launch.kernel.label,
                "parameters": dict(failure.launch.parameters),
                "kind": failure.kind,
                "message": failure.message,
            }
            for failure in one.failures
        ],
    }
