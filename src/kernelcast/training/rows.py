"""Which rows of a table count, and what to say where they do not suffice."""

from collections.abc import Callable

import numpy as np

from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Texts, TrainingTable
from kernelcast.training.settings import ALL_ROWS, LEAST_GROUPS, RowFilter


def list_names(labels: Texts) -> list[str]:
    return sorted({str(one) for one in labels})


def choose_rows(table: TrainingTable, rows: RowFilter) -> TrainingTable:
    """Return the measured launches that a filter takes, in their order."""
    keep = np.isfinite(table.seconds) & (table.seconds >= rows.shortest_s)
    if rows.least_work_groups:
        keep &= table.work_groups >= rows.least_work_groups
    return table.take(keep)


def choose_newest_samples(table: TrainingTable, tell: Callable[[str], None]) -> TrainingTable:
    """Keep each device's rows of its newest sampler: one is off by other than another is."""
    samplers = table.frame.groupby("devices")["samplers"]
    newest = samplers.transform("max")
    older = table.frame["samplers"] < newest
    lost = older.groupby(table.frame["devices"]).sum()
    for device, count, rows, last in zip(
        lost.index, lost, samplers.size(), samplers.max(), strict=True
    ):
        if count:
            tell(
                f"{device}: {count} of {rows} rows were taken by samplers before revision "
                f"{last:g} and are left out; `kernelcast collect` measures them anew"
            )
    return table.take(~older.to_numpy())


def require_rows(table: TrainingTable) -> None:
    if np.isfinite(table.seconds).any():
        return
    raise InputError(
        f"{len(table)} observations, none of them with a measured time: nothing to learn from; "
        "measure some by `kernelcast collect`, or name other data by --data"
    )


def describe_shortage(
    table: TrainingTable, groups: int, what: str, rows: RowFilter = ALL_ROWS
) -> str:
    """Say what the rows of a device, or of all, are short of, and what to do."""
    devices = list_names(table.devices)
    measured = choose_rows(table, ALL_ROWS)
    counting = choose_rows(table, rows)
    sampled = int(np.count_nonzero(np.isfinite(counting.linear_s)))
    found = [_count(len(table), "row"), f"{len(measured)} measured"]
    is_filtered = rows != ALL_ROWS
    if is_filtered:
        found.append(f"{len(counting)} of {rows.describe()}")
    needed = "measured"
    if np.isfinite(table.linear_s).any():  # else models learn without samples
        found.append(f"{sampled} of these sampled")
        needed = "sampled and measured"
    more = f" --device {devices[0]}" if len(devices) == 1 else ""
    looser = ", or lower --shortest and --least-work-groups" if is_filtered else ""
    least = _count(LEAST_GROUPS, what)
    return (
        f"{', '.join(found)}, of {_count(groups, what)}; at least {least} with "
        f"{needed} launches are needed: `kernelcast collect{more}` adds some{looser}"
    )


def _count(number: int, what: str) -> str:
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number} {what if number == 1 else plural}"
