"""Makes the report of a balanced launch, and JSON of it; its keys are the program's interface."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelcast.balancing.device_state import DeviceState, Execution
from kernelcast.balancing.settings import DevicePlace
from kernelcast.balancing.work_queue import spans_of
from kernelcast.features.write_safety import SplitSafety
from kernelcast.records.balance import Activity, BalanceReport, Bar, DeviceShare
from kernelcast.records.errors import KernelcastError


def make_report(
    kernel: str,
    safety: SplitSafety,
    execution: Execution,
    places: Sequence[DevicePlace],
    names: Sequence[str],
    notes: Sequence[str],
    errors: Mapping[int, KernelcastError],
) -> BalanceReport:
    """Put together how a launch went; `errors` are those of devices that had failed before."""
    now = {n: one.error for n, one in enumerate(execution.states) if one.error is not None}
    failed = {**errors, **now}
    left_out = (name for name, one in zip(names, execution.states, strict=True) if one.is_left_out)
    started_s, merging_s, ended_s = execution.started_s, execution.merging_s, execution.ended_s
    first_s = execution.first_s or merging_s
    last_s = max(execution.last_s, first_s)
    host = Bar(
        device=len(places),
        activity=Activity.MERGE,
        start_s=merging_s,
        end_s=ended_s,
    )
    return BalanceReport(
        kernel=kernel,
        space=safety.space,
        merges=dict(safety.rules),
        shares=tuple(
            _describe(
                state,
                safety,
                device_id=place.device_id,
                device=name,
                cores=place.cores,
                failure=str(failed.get(number, "")),
            )
            for number, (state, place, name) in enumerate(
                zip(execution.states, places, names, strict=True)
            )
        ),
        bars=tuple(
            replace(bar, start_s=bar.start_s - started_s, end_s=bar.end_s - started_s)
            for bar in (*execution.bars, host)
        ),
        estimated_s=None
        if execution.estimated_end_s is None
        else max(0.0, execution.estimated_end_s - first_s),
        real_s=last_s - first_s,
        prepare_s=first_s - started_s,
        merge_s=ended_s - merging_s,
        total_s=ended_s - started_s,
        notes=(*notes, *(f"{one}: left out, too slow to be of use" for one in left_out)),
    )


def _describe(state: DeviceState, safety: SplitSafety, **named: Any) -> DeviceShare:  # noqa: ANN401
    done = safety.space.work_groups(spans_of(state.owned.nonzero()[0]))
    alone_s = state.estimated_s
    return DeviceShare(
        **named,
        work_groups=done,
        share=done / safety.space.ndrange.work_group_count,
        estimated_share=state.estimated_share,
        estimated_s=alone_s,
        low_s=None if alone_s is None else alone_s / state.error_factor,
        high_s=None if alone_s is None else alone_s * state.error_factor,
        real_s=state.real_s,
    )


def balance_to_json(report: BalanceReport) -> dict[str, object]:
    """Turn a report into what `kernelcast balance --json` prints.

    Returns
    -------
    dict
        Strings, finite numbers, lists, dictionaries and None only; times are in seconds.
    """
    ndrange = report.space.ndrange
    return {
        "kernel": report.kernel,
        "global_size": list(ndrange.global_size),
        "local_size": list(ndrange.known_local_size),
        "work_groups": ndrange.work_group_count,
        "axis": report.space.axis,
        "slabs": report.space.count,
        "merges": {name: str(rule) for name, rule in report.merges.items()},
        "estimated_seconds": report.estimated_s,
        "seconds": report.real_s,
        "prepare_seconds": report.prepare_s,
        "merge_seconds": report.merge_s,
        "total_seconds": report.total_s,
        "devices": [_share_to_json(one) for one in report.shares],
        "timeline": [
            {
                "device": bar.device if bar.device < len(report.shares) else None,
                "activity": str(bar.activity),
                "start": bar.start_s,
                "end": bar.end_s,
                "work_groups": bar.work_groups,
            }
            for bar in report.bars
        ],
        "notes": list(report.notes),
    }


def _share_to_json(share: DeviceShare) -> dict[str, object]:
    return {
        "device_id": share.device_id,
        "device": share.device,
        "cores": list(share.cores),
        "work_groups": share.work_groups,
        "share": share.share,
        "estimated_share": share.estimated_share,
        "estimated_seconds_alone": share.estimated_s,
        "low": share.low_s,
        "high": share.high_s,
        "busy_seconds": share.real_s,
        "failure": share.failure or None,
    }
