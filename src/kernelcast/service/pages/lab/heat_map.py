"""Times of a launch over its local sizes as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from kernelcast.reports.charts import Axis, Chart, Point, Series
from kernelcast.reports.drawing import COLOURS, INK
from kernelcast.reports.numbers import unit_of_time
from kernelcast.service.pages.filters import write_digits, write_seconds
from kernelcast.service.pages.pictures import Picture

if TYPE_CHECKING:  # slow to load
    from matplotlib.figure import Figure

_ROW_INCHES: Final = 0.36
_MOST_LETTERED: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSizeTime:
    """A local size and what it takes."""

    local_size: tuple[int, ...]
    seconds: float | None
    detail: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """The local size as people write it."""
        return " x ".join(map(str, self.local_size))


def make_heat_map(name: str, where: str, times: Sequence[LocalSizeTime]) -> Picture:
    """Make the picture: columns are dimension 0, rows the other dimensions."""
    known = sorted((one for one in times if one.seconds is not None), key=_seconds)
    best, worst = known[0], known[-1]
    rows = len({one.local_size[1:] for one in known})
    return Picture(
        name=f"{name}-local-sizes",
        alternative=(
            f"Time of {name} on {where} over {len(known)} local sizes. Shortest: "
            f"{write_seconds(best.seconds)} at {best.text}. Longest: "
            f"{write_seconds(worst.seconds)} at {worst.text}."
        ),
        caption="Columns: work-items along dimension 0; rows: along the others. The frame marks "
        "the shortest time."
        if rows > 1
        else "Work-items of a work-group.",
        columns=("local_size", "seconds", "detail", "reason"),
        rows=[(one.text, one.seconds, one.detail, one.reason) for one in times],
        draw=partial(_draw_map, known=known) if rows > 1 else None,
        height_inches=max(2.6, 1.1 + _ROW_INCHES * rows) if rows > 1 else 3.2,
        chart=None if rows > 1 else _make_line(known),
    )


def _make_line(known: Sequence[LocalSizeTime]) -> Chart:
    ordered = sorted(known, key=lambda one: one.local_size)
    points = [Point(x=one.local_size[0], y=_seconds(one), label=one.detail) for one in ordered]
    return Chart(
        x=Axis(title="work-items of a work-group", is_log=True),
        y=Axis(title="time", unit="s"),
        series=(Series(name="time", points=points, kind="line"),),
    )


def _seconds(one: LocalSizeTime) -> float:
    return one.seconds or 0.0


def _draw_map(figure: "Figure", known: Sequence[LocalSizeTime]) -> None:
    import numpy as np
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import LogLocator

    scale, unit = unit_of_time(_seconds(known[0]))
    columns = sorted({one.local_size[0] for one in known})
    rows = sorted({one.local_size[1:] for one in known}, key=lambda one: one[::-1])
    cells = np.full((len(rows), len(columns)), np.nan)
    for one in known:
        place = rows.index(one.local_size[1:]), columns.index(one.local_size[0])
        cells[place] = _seconds(one) / scale
    axes = figure.subplots()
    norm = LogNorm(vmin=np.nanmin(cells), vmax=max(np.nanmax(cells), 1.0001 * np.nanmin(cells)))
    image = axes.imshow(cells, cmap="viridis_r", norm=norm, aspect="auto", origin="lower")
    if len(columns) <= _MOST_LETTERED:
        for row, column in np.argwhere(np.isfinite(cells)):
            is_dark = norm(cells[row, column]) > 0.5
            axes.text(column, row, write_digits(float(cells[row, column])), ha="center",
                      va="center", fontsize=7, color="white" if is_dark else "black")  # fmt: skip
    best = known[0].local_size
    corner = (columns.index(best[0]) - 0.5, rows.index(best[1:]) - 0.5)
    axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=COLOURS[5], linewidth=2.5))
    axes.set_xticks(range(len(columns)), [str(one) for one in columns])
    axes.set_yticks(range(len(rows)), [" x ".join(map(str, one)) for one in rows])
    axes.set_xlabel("work-items along dimension 0")
    axes.set_ylabel("along dimension 1" if len(rows[0]) == 1 else "along dimensions 1 and 2")
    bar = figure.colorbar(image, ax=axes, label=f"time in {unit}")
    bar.outline.set_edgecolor(INK)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    bar.ax.yaxis.set_major_formatter(lambda value, _: write_digits(value))
    bar.ax.yaxis.set_minor_formatter(lambda value, _: "")
