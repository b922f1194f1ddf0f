"""What a store holds, in groups and in plain dictionaries for JSON."""

from dataclasses import asdict
from typing import Any, cast

from kernelcast.records.observation import FailureRecord, Observation
from kernelcast.records.plain import CONVERTER, pick
from kernelcast.training_data.store import Selection, Store
from kernelcast.training_data.store.schema import load_time

_COLUMNS = {
    "device": ["device_id"],
    "kernel": ["suite", "application", "kernel"],
    "application": ["suite", "application"],
    "suite": ["suite"],
}
GROUPS = tuple(_COLUMNS)
_SAMPLE_FIELDS = (
    "multiple", "window_set", "work_groups", "linear_s", "sampling_s", "overhead_s",
)  # fmt: skip


def summarise_store(store: Store, wanted: Selection, *, by: str = "device") -> list[dict[str, Any]]:
    """Group observations as ``kernelcast data ls --json`` shows them; names as in `GROUPS`."""
    import pandas as pd  # slow to import

    names = (
        "suite", "application", "kernel", "device_id", "flags", "seconds", "noise",
        "measured_at_us",
    )  # fmt: skip
    rows = [tuple(row) for some in store.read_rows(wanted, columns=names) for row in some]
    frame = pd.DataFrame(rows, columns=[*names])
    groups = frame.assign(
        flagged=frame["flags"] != "",
        label=frame["suite"] + "/" + frame["application"] + "/" + frame["kernel"],
        noise=frame["noise"].astype(float),
        newest=frame["measured_at_us"].astype(float),
    ).groupby(_COLUMNS[by])
    found = groups.agg(
        rows=("label", "size"), kernels=("label", "nunique"), devices=("device_id", "nunique"),
        flagged=("flagged", "sum"), shortest_s=("seconds", "min"), longest_s=("seconds", "max"),
        median_noise=("noise", lambda noise: noise.quantile(0.5, interpolation="lower")),
        newest=("newest", "max"),
    ).reset_index()  # fmt: skip
    keys = found[_COLUMNS[by]].itertuples(index=False, name=None)
    found.insert(0, "group", ["/".join(filter(None, key)) for key in keys])
    found = found.drop(columns=_COLUMNS[by]).astype(object)
    summed = cast("list[dict[str, Any]]", found.where(found.notna(), None).to_dict("records"))
    for one in summed:
        one["newest"] = CONVERTER.unstructure(load_time(one["newest"] and int(one["newest"])))
    return summed


def observation_to_json(one: Observation, *, is_full: bool = True) -> dict[str, object]:
    """Turn an observation into what ``kernelcast data show --json`` prints of it."""
    content: dict[str, object] = CONVERTER.unstructure(one.list_facts())
    if not is_full:
        return content
    return {
        **content,
        "durations_s": list(one.runs.durations_s),
        "machine_state": asdict(one.machine_state),
        "versions": dict(one.versions),
        "samples": [
            {
                "durations_s": [launch.duration_s for launch in sample.launches],
                **CONVERTER.unstructure(pick(sample, *_SAMPLE_FIELDS)),
            }
            for sample in one.samples
        ],
        **pick(one, schema="features.schema.id"),
        "features": None if one.features is None else one.features.as_dict(),
    }


def failure_to_json(one: FailureRecord) -> dict[str, object]:
    """Turn a failure into what ``kernelcast data ls --failures --json`` prints of it."""
    content: dict[str, object] = CONVERTER.unstructure(
        pick(
            one, "key", "kind", "message", "failed_at", kernel="launch.kernel.label",
            device_id="launch.device.id", global_size="launch.ndrange.global_size",
        )
    )  # fmt: skip
    return content
