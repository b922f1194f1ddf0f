import csv
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from kernelcast.reports.charts import Axis, Chart, Figure, Kind, Point, Series
from kernelcast.reports.drawing import draw_png, draw_svg, save_figure
from kernelcast.reports.presenter import (
    Cell,
    Part,
    Section,
    Table,
    make_html,
    make_renderable,
    save_page,
    tabulate,
    write_csv,
)

TABLE = Table(
    columns={"kernel": "text", "time": "s", "mean\nerror": "share", "launches": "whole"},
    rows=[
        ("saxpy <b>", 0.0123, 0.05, 12),
        ("gemm", None, float("nan"), 200_000),
        ("fft", [Cell("12 ms", remark="11 - 13 ms", mark="r")], "failed", 3),
    ],
    title="Launches", chosen={1}, stacks=[("kernel",), ("time", "mean\nerror", "launches")],
)  # fmt: skip


def _chart(y_name: str, *kinds: Kind, names: tuple[str, ...] = ()) -> Chart:
    points = [Point(x=0.0, y=1.0, low=0.5, high=1.5), Point(x=1.0, y=3.0)]
    return Chart(
        x=Axis(title="size", names=names),
        y=Axis(title=y_name),
        series=tuple(Series(name=kind, kind=kind, points=points) for kind in kinds),
    )


def _print(part: Part, width: int = 200) -> str:
    console = Console(file=StringIO(), width=width)
    shown = make_renderable(part, width=width)
    if shown is not None:
        console.print(shown)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_values_are_written_in_the_unit_of_their_column() -> None:
    """Formats numbers by the unit, missing ones as a dash, and leaves texts alone."""
    assert TABLE.texts()[:2] == [
        ["saxpy <b>", "12.3 ms", "5.0 %", "12"],
        ["gemm", "-", "-", "200,000"],
    ]
    assert TABLE.texts()[2] == ["fft", "12 ms (r)", "failed", "3"]


def test_records_make_rows_by_the_fields_of_columns() -> None:
    """Reads names, paths and functions, of objects and dictionaries; empty columns may go."""
    records = [{"cell": Cell("a", mark="x"), "time": {"seconds": 2.0}, "none": None},
               {"cell": Cell("b"), "time": None, "none": ""}]  # fmt: skip
    table = Table.of(records, {
        "cell": "text", "time": (".2f", "time.seconds"), "none": "whole",
        "mark": ("text", "cell.mark"),
        "letter": ("text", lambda one: one["cell"].text.upper()),
    })  # fmt: skip
    assert table.texts() == [["a (x)", "2.00", "-", "x", "A"], ["b", "-", "", "", "B"]]
    assert [*table.without_empty("none", "mark").columns] == ["cell", "time", "mark", "letter"]


def test_a_narrow_terminal_gets_columns_above_each_other() -> None:
    """Stacks columns where the table does not fit, and loses nothing."""
    wide, narrow = _print(TABLE), _print(TABLE, 20)
    assert max(map(len, narrow.splitlines())) <= 20
    assert set(narrow.split()) >= {one for one in wide.split() if not one.startswith("─")}


def test_html_has_the_same_content_escaped() -> None:
    """Escapes texts, shows remarks, keeps raw numbers for sorting, marks the chosen row."""
    html = make_html(Section(title="A & B", about="here", parts=["words", {"name": "why"}, TABLE]))
    assert "<h1>A &amp; B</h1>" in html
    assert "saxpy &lt;b&gt;" in html
    assert 'data-value="0.0123">12.3 ms<' in html
    assert "11 - 13 ms" in html
    assert html.count('class="chosen"') == 1
    assert "<dt>name</dt><dd>why</dd>" in html


def test_csv_has_raw_numbers() -> None:
    """Writes numbers as they are, of tables and of what figures draw."""
    rows = list(csv.reader(StringIO(write_csv(TABLE))))
    assert rows[0] == ["kernel", "time", "mean error", "launches"]
    assert rows[1] == ["saxpy <b>", "0.0123", "0.05", "12"]
    figure = Figure(charts=(_chart("time", "line"),))
    assert [*csv.reader(StringIO(write_csv(tabulate(figure))))][1] == [
        "line", "0.0", "1.0", "0.5", "1.5", "",
    ]  # fmt: skip


@pytest.mark.parametrize("names", [(), ("a", "b")])
def test_every_kind_of_series_is_drawn(names: tuple[str, ...], tmp_path: Path) -> None:
    """Draws points, lines, bars, stacks, spans and guides, for files and for pages."""
    kinds: tuple[Kind, ...] = ("points", "line", "bars", "stack", "spans", "guide")
    figure = Figure(charts=(_chart("time", *kinds, names=names),), title="All", caption="Why.")
    save_figure(tmp_path / "all.png", figure)
    assert draw_png(figure).startswith(b"\x89PNG")
    assert (tmp_path / "all.png").stat().st_size > 0
    svg = draw_svg(figure, is_inline=True)
    assert all(f">{kind}<" in svg for kind in kinds)
    assert "currentColor" in svg
    save_page(tmp_path / "all.html", "All", figure)
    assert "<figcaption>Why.</figcaption>" in (tmp_path / "all.html").read_text()


def test_what_all_panels_share_is_written_once() -> None:
    """Writes the name of an axis beside all panels, and at each where they differ."""
    charts = tuple(_chart(name, "line") for name in ("time", "rate", "time"))
    svg = draw_svg(Figure(charts=charts), is_inline=True)
    assert [svg.count(f">{name}<") for name in ("size", "time", "rate")] == [1, 2, 1]
