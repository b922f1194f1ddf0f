"""Tables of ``kernelcast data``."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from kernelcast.cli.terminal import show, show_line
from kernelcast.reports.numbers import format_seconds, format_share
from kernelcast.training_data.check import Finding

_KEY_LETTERS = 12
_ABSENT = "-"


def make_summary_table(by: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay groups of observations out, one per row."""
    table = Table(by, "rows", "kernels", "devices", "flagged", "shortest", "longest",
                  "median\nnoise", "newest", box=box.SIMPLE_HEAD)  # fmt: skip
    for one in rows:
        table.add_row(
            one["group"] or _ABSENT,
            f"{one['rows']:,}",
            str(one["kernels"]),
            str(one["devices"]),
            str(one["flagged"]),
            format_seconds(one["shortest_s"]),
            format_seconds(one["longest_s"]),
            _share(one["median_noise"]),
            _moment(one["newest"]),
        )
    return table


def make_row_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay observations out, one per row."""
    table = Table("key", "kernel", "device", "global size", "local size", "time", "noise",
                  "origin", "flags", box=box.SIMPLE_HEAD)  # fmt: skip
    for one in rows:
        table.add_row(
            one["key"][:_KEY_LETTERS],
            one["kernel"],
            one["device_id"],
            _sizes(one["global_size"]),
            _sizes(one["local_size"]),
            format_seconds(one["seconds"]),
            _share(one["noise"]),
            one["origin"],
            ", ".join(one["flags"]) or _ABSENT,
        )
    return table


def make_failure_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay failures out, one per row."""
    table = Table("kernel", "device", "global size", "kind", "what went wrong",
                  box=box.SIMPLE_HEAD)  # fmt: skip
    for one in rows:
        table.add_row(
            one["kernel"], one["device_id"], _sizes(one["global_size"]), one["kind"], one["message"]
        )
    return table


def make_finding_table(findings: Sequence[Finding]) -> Table:
    """Lay what is wrong out, one row of the store per row."""
    table = Table("kind", "key", "kernel", "device", "what is wrong", box=box.SIMPLE_HEAD)
    for one in findings:
        table.add_row(
            one.kind.value, one.key[:_KEY_LETTERS], one.kernel, one.device_id, one.message
        )
    return table


def show_observation(one: Mapping[str, Any]) -> None:
    """Print an observation: what it is, its samples, its features."""
    facts = Table("", "", box=None, show_header=False)
    for name, value in one.items():
        if name not in {"samples", "features"}:
            facts.add_row(name, _plain(value))
    show(facts)
    if one["samples"]:
        show(_make_sample_table(one["samples"]))
    if one["features"]:
        features = Table("feature", "value", box=box.SIMPLE_HEAD)
        for name, value in one["features"].items():
            features.add_row(name, f"{value:.6g}")
        show(features)
    show_line("")


def _make_sample_table(samples: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("multiple", "window set", "work-groups", "linear model", "sampling",
                  box=box.SIMPLE_HEAD)  # fmt: skip
    for one in samples:
        linear_s = one["linear_s"]
        table.add_row(
            str(one["multiple"]),
            str(one["window_set"]),
            _sizes(one["work_groups"]),
            _ABSENT if linear_s is None else format_seconds(linear_s),
            format_seconds(one["sampling_s"]),
        )
    return table


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={v}" for k, v in value.items() if v is not None) or _ABSENT
    if isinstance(value, list):
        return _sizes(value)
    return _ABSENT if value in {None, ""} else str(value)


def _sizes(values: Sequence[object] | None) -> str:
    return " x ".join(map(str, values)) if values else _ABSENT


def _share(value: float | None) -> str:
    return _ABSENT if value is None else format_share(value)


def _moment(text: str | None) -> str:
    return _ABSENT if text is None else text[:16].replace("T", " ")
