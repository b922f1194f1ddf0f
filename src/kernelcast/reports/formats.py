"""Devices as plain dictionaries for JSON; the keys are the program's public interface."""

from kernelcast.records.device import DeviceReport
from kernelcast.records.plain import to_plain


def report_to_json(report: DeviceReport) -> dict[str, object]:
    """Turn a device's report into what `kernelcast devices --json` prints of it."""
    return {
        **to_plain(report.description),
        "timer": None if report.timer is None else to_plain(report.timer),
        "status": "ok" if report.broken_reason is None else "broken",
        "broken_reason": report.broken_reason,
    }
