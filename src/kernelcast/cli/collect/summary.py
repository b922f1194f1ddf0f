"""What ``kernelcast collect`` has come to: a table, JSON, complaints."""

from dataclasses import replace
from typing import Any

from rich.table import Table

from kernelcast.cli.terminal import make_table
from kernelcast.collection.progress import CollectionOutcome, DeviceOutcome
from kernelcast.reports.plain import to_plain


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
