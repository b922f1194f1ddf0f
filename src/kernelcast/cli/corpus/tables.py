"""Tables and JSON of ``kernelcast corpus``."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from kernelcast.cli.terminal import make_table
from kernelcast.collection.corpus.check_task import CheckOutcome, CheckStatus
from kernelcast.reports.numbers import format_seconds
from kernelcast.reports.plain import to_plain
from kernelcast.training_data.applications import Application, CorpusKernel


def kernel_to_json(application: Application, kernel: CorpusKernel) -> dict[str, object]:
    """Describe a kernel of the corpus as JSON."""
    size = kernel.size
    return {
        "kernel": kernel.name,
        "application": application.name,
        "suite": application.suite.value,
        "title": application.title,
        "table_2": kernel.table_2,
        "size": {
            "parameter": size.parameter,
            "least": size.least,
            "most": size.most,
            "multiple_of": size.multiple_of,
            "power_of_two": size.is_power_of_two,
            "exponent": size.exponent,
        },
        "local_sizes": [list(one) for one in kernel.local_sizes],
        "fp64": kernel.uses_fp64,
        "note": kernel.note,
        "problem": str(kernel.problem_path),
    }


def outcome_to_json(outcome: CheckOutcome) -> dict[str, object]:
    """Describe how a check ended as JSON."""
    return {**to_plain(outcome), "seconds": round(outcome.seconds, 3)}


def make_kernel_table(applications: Iterable[Application]) -> Table:
    """Lay out the corpus, one kernel per row."""
    table = make_table(
        "kernel", "suite", "Table 2", "size", "local sizes", "fp64", "what it computes"
    )
    for application in applications:
        for kernel in application.kernels:
            size = kernel.size
            table.add_row(
                kernel.name,
                application.suite.value,
                kernel.table_2 or "",
                f"{size.parameter} {size.least:,} to {size.most:,}",
                ", ".join("x".join(map(str, one)) for one in kernel.local_sizes),
                "yes" if kernel.uses_fp64 else "",
                application.title,
            )
    return table


def make_check_table(outcomes: Sequence[CheckOutcome]) -> Table:
    """Lay out how checks ended: a row per kernel, a column per device."""
    devices = list(dict.fromkeys(one.device_id for one in outcomes))
    by_place = {(one.kernel, one.device_id): one for one in outcomes}
    table = make_table("kernel", *devices)
    for name in dict.fromkeys(one.kernel for one in outcomes):
        table.add_row(name, *(_describe(by_place.get((name, device))) for device in devices))
    return table


def list_complaints(outcomes: Iterable[CheckOutcome]) -> list[str]:
    """Write why checks did not pass, one line each."""
    return [
        f"{one.kernel} on {one.device_id}: {one.status}: {one.explanation}"
        for one in outcomes
        if one.status in {CheckStatus.DIFFERS, CheckStatus.FAILED}
    ]


def _describe(outcome: CheckOutcome | None) -> str:
    if outcome is None:
        return ""
    if outcome.status is CheckStatus.PASSED:
        return f"passed in {format_seconds(outcome.seconds)}"
    return outcome.status.value
