"""Makes the report of a balanced launch, and JSON of it; its keys are the program's interface."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelcast.balancing.scheduler import DeviceState, Scheduler
from kernelcast.balancing.settings import DevicePlace
from kernelcast.balancing.work import spans_of
from kernelcast.features.write_safety import SplitSafety
from kernelcast.records.balance import Activity, BalanceReport, Bar, DeviceShare
from kernelcast.records.errors import KernelcastError
from kernelcast.records.plain import pick


def make_report(
    kernel: str,
    safety: SplitSafety,
    scheduler: Scheduler,
    devices: Sequence[tuple[DevicePlace, str, DeviceState]],
    times_s: tuple[float, float, float],
    notes: Sequence[str],
    errors: Mapping[int, KernelcastError],
) -> BalanceReport:
    """Report a launch; the host's times are those when it began, began to merge, and was done."""
    space, (started_s, merging_s, ended_s) = safety.space, times_s
    first_s = scheduler.first_s or merging_s
    last_s = max(scheduler.last_s, first_s)
    shares, left_out = [], []
    for number, (place, name, state) in enumerate(devices):
        done = space.work_groups(spans_of(state.owned.nonzero()[0]))
        alone = state.estimate
        failure = state.error or errors.get(number)
        shares.append(
            DeviceShare(
                device_id=place.device_id,
                device=name,
                cores=place.cores,
                work_groups=done,
                share=done / space.ndrange.work_group_count,
                estimated_share=state.estimated_share,
                estimated_s=None if alone is None else alone.seconds,
                low_s=None if alone is None else alone.low,
                high_s=None if alone is None else alone.high,
                real_s=state.real_s,
                failure="" if failure is None else str(failure),
            )
        )
        if state.is_left_out:
            left_out.append(f"{name}: left out, too slow to be of use")
    merging = Bar(
        device=len(devices), activity=Activity.MERGE, start_s=merging_s, end_s=ended_s
    )  # the host
    end_s = scheduler.estimated_end_s
    return BalanceReport(
        kernel=kernel,
        space=space,
        merges=dict(safety.rules),
        shares=tuple(shares),
        bars=tuple(
            replace(bar, start_s=bar.start_s - started_s, end_s=bar.end_s - started_s)
            for bar in (*scheduler.bars, merging)
        ),
        estimated_s=None if end_s is None else max(0.0, end_s - first_s),
        real_s=last_s - first_s,
        prepare_s=first_s - started_s,
        merge_s=ended_s - merging_s,
        total_s=ended_s - started_s,
        notes=(*notes, *left_out),
    )


def balance_to_json(report: BalanceReport) -> dict[str, object]:
    return {
        **pick(
            report, "kernel", global_size="space.ndrange.global_size",
            local_size="space.ndrange.known_local_size",
            work_groups="space.ndrange.work_group_count", axis="space.axis", slabs="space.count",
            merges="merges", estimated_seconds="estimated_s", seconds="real_s",
            prepare_seconds="prepare_s", merge_seconds="merge_s", total_seconds="total_s",
        ),
        "devices": [
            {**pick(
                share, "device_id", "device", "cores", "work_groups", "share", "estimated_share",
                estimated_seconds_alone="estimated_s", low="low_s", high="high_s",
                busy_seconds="real_s",
            ), "failure": share.failure or None}
            for share in report.shares
        ],
        "timeline": [
            {"device": bar.device if bar.device < len(report.shares) else None,
             **pick(bar, "activity", "work_groups", start="start_s", end="end_s")}
            for bar in report.bars
        ],
        "notes": list(report.notes),
    }  # fmt: skip
