"""A balanced launch as plain dictionaries for JSON; the keys are the program's interface."""

from kernelcast.records.balance import BalanceReport, DeviceShare


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
        "devices": [_describe(one) for one in report.shares],
        "timeline": [
            {
                "device": bar.place if bar.place < len(report.shares) else None,
                "activity": str(bar.activity),
                "start": bar.start_s,
                "end": bar.end_s,
                "work_groups": bar.work_groups,
            }
            for bar in report.bars
        ],
        "notes": list(report.notes),
    }


def _describe(share: DeviceShare) -> dict[str, object]:
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
