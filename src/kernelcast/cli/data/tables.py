"""Tables of ``kernelcast data``."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from kernelcast.cli.terminal import make_table, show, show_line
from kernelcast.reports.numbers import NOTHING, format_seconds, format_share
from kernelcast.training_data.check import Finding

_KEY_LETTERS = 12


def make_summary_table(by: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay groups of observations out, one per row."""
    table = make_table(
        by,
        "rows",
        "kernels",
        "devices",
        "flagged",
        "shortest",
        "longest",
        "median\nnoise",
        "newest",
    )
    for one in rows:
        table.add_row(
            one["group"] or NOTHING,
            f"{one['rows']:,}",
            str(one["kernels"]),
            str(one["devices"]),
            str(one["flagged"]),
            format_seconds(one["shortest_s"]),
            format_seconds(one["longest_s"]),
            format_share(one["median_noise"]),
            _moment(one["newest"]),
        )
    return table


def make_row_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay observations out, one per row."""
    table = make_table(
        "key", "kernel", "device", "global size", "local size", "time", "noise", "origin", "flags"
    )
    for one in rows:
        table.add_row(
            one["key"][:_KEY_LETTERS],
            one["kernel"],
            one["device_id"],
            _sizes(one["global_size"]),
            _sizes(one["local_size"]),
            format_seconds(one["seconds"]),
            format_share(one["noise"]),
            one["origin"],
            ", ".join(one["flags"]) or NOTHING,
        )
    return table


def make_failure_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay failures out, one per row."""
    table = make_table("kernel", "device", "global size", "kind", "what went wrong")
    for one in rows:
        table.add_row(
            one["kernel"], one["device_id"], _sizes(one["global_size"]), one["kind"], one["message"]
        )
    return table


def make_finding_table(findings: Sequence[Finding]) -> Table:
    """Lay what is wrong out, one row of the store per row."""
    table = make_table("kind", "key", "kernel", "device", "what is wrong")
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
        features = make_table("feature", "value")
        for name, value in one["features"].items():
            features.add_row(name, f"{value:.6g}")
        show(features)
    show_line("")


def _make_sample_table(samples: Sequence[Mapping[str, Any]]) -> Table:
    table = make_table("multiple", "window set", "work-groups", "linear model", "sampling")
    for one in samples:
        table.add_row(
            str(one["multiple"]),
            str(one["window_set"]),
            _sizes(one["work_groups"]),
            format_seconds(one["linear_s"]),
            format_seconds(one["sampling_s"]),
        )
    return table


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={v}" for k, v in value.items() if v is not None) or NOTHING
    if isinstance(value, list):
        return _sizes(value)
    return NOTHING if value in {None, ""} else str(value)


def _sizes(values: Sequence[object] | None) -> str:
    return " x ".join(map(str, values)) if values else NOTHING


def _moment(text: str | None) -> str:
    return NOTHING if text is None else text[:16].replace("T", " ")
