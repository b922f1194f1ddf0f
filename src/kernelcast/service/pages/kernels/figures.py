"""Pictures of a kernel's page: predicted over measured times, and what was measured when."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kernelcast.reports.charts import Axis, Chart, Point, Series, chart_predictions, clip_seconds
from kernelcast.service.pages.accuracy.scores import Judged
from kernelcast.service.pages.filters import write_seconds
from kernelcast.service.pages.pictures import Picture

if TYPE_CHECKING:  # slow to load
    from kernelcast.reports.accuracy.held_launches import HeldLaunch, LaunchDetails

_MOST_HISTORIES: Final = 12


def make_pictures(
    kernel: str,
    rows: Sequence[Judged],
    launches: "Sequence[HeldLaunch]",
    details: "LaunchDetails",
) -> Mapping[str, Picture]:
    """Give the pictures by the names that their addresses have."""
    found = {}
    if rows:
        found["predicted"] = _picture_predicted(kernel, rows, details)
    if details.times:
        found["history"] = _picture_history(kernel, launches, details)
    return found


def write_size(size: Sequence[int] | None) -> str:
    """Write a global size.

    Examples
    --------
    >>> write_size((1024, 512)), write_size(None)
    ('1024 x 512', 'unknown size')
    """
    return " x ".join(map(str, size)) if size else "unknown size"


def _picture_predicted(kernel: str, rows: Sequence[Judged], details: "LaunchDetails") -> Picture:
    methods = list(dict.fromkeys((one.method, one.device_id) for one in rows))
    series = [
        Series(
            name=f"{method} on {device}",
            points=[
                Point(
                    x=one.measured_s, y=one.seconds, low=one.low, high=one.high,
                    label=write_size(details.sizes.get(one.launch)),
                )
                for one in rows
                if (one.method, one.device_id) == (method, device)
            ],
        )
        for method, device in methods
    ]  # fmt: skip
    return Picture(
        name="predicted",
        alternative=(
            f"Predicted over measured times of {kernel}: {len(rows)} predictions by "
            f"{len({one.method for one in rows})} methods."
        ),
        columns=("device", "method", "global_size", "measured_s", "predicted_s", "low_s", "high_s"),
        rows=[
            (one.device_id, one.method, write_size(details.sizes.get(one.launch)), one.measured_s,
             one.seconds, one.low, one.high)
            for one in rows
        ],
        caption="Every size, device and method.",
        chart=chart_predictions(series, has_bounds=False),
    )  # fmt: skip


def _picture_history(
    kernel: str, launches: "Sequence[HeldLaunch]", details: "LaunchDetails"
) -> Picture:
    shown = [one for one in launches if one.key in details.times][:_MOST_HISTORIES]
    every = [one for times in details.times.values() for one in times]
    first, last = min(every), max(every)
    return Picture(
        name="history",
        alternative=(
            f"Measured times of {kernel}, from {write_seconds(first[1])} on {first[0]:%Y-%m-%d} to "
            f"{write_seconds(last[1])} on {last[0]:%Y-%m-%d}."
        ),
        columns=("device", "global_size", "measured_at", "seconds"),
        rows=[
            (one.device_id, write_size(details.sizes.get(one.key)), when.isoformat(), seconds)
            for one in launches
            for when, seconds in details.times.get(one.key, ())
        ],
        caption=f"The newest times of each launch; at most {_MOST_HISTORIES} launches are drawn.",
        chart=Chart(
            x=Axis(title="measured", unit="moment"),
            y=Axis(title="time", unit="s", is_log=True),
            series=tuple(
                Series(
                    name=f"{write_size(details.sizes.get(one.key))}, {one.device_id}", kind="line",
                    points=[
                        Point(x=when.timestamp(), y=clip_seconds(seconds))
                        for when, seconds in details.times[one.key]
                    ],
                )
                for one in shown
            ),
        ),
    )  # fmt: skip
