"""Presents results: one description becomes text on a terminal, an HTML page, CSV or JSON.

A command, or a page of the service, makes *parts* and formats nothing itself:

- `str`: a paragraph. A `dict` of texts: names and what is to be said of each.
- `Table`: columns with the unit of their numbers, and rows of raw values.
- `Figure` of `kernelcast.reports.charts`: drawn on pages, and in files by
  `kernelcast.reports.drawing.save_figure`; a terminal shows none.
- `Section`: a title over parts, which may be sections again.

>>> found = [{"kernel": "saxpy", "time": {"seconds": 0.0123}, "work": 4.5}]
>>> table = Table.of(
...     found, {"kernel": "text", "time": ("s", "time.seconds"), "work": ".2f",
...             "error": ("share", lambda one: one["work"] / 90)},
... )
>>> table.texts()
[['saxpy', '12.3 ms', '4.50', '5.0 %']]

What follows from parts:

- terminal: ``kernelcast.cli.terminal.show(*parts)``, which prints what `make_renderable` makes;
- page in one file: ``save_page(path, title, *parts)``;
- part of a page of the service: ``make_html(*parts)``, whose markup `static/tables.js` can sort;
- CSV: ``write_csv(table)``, or of a figure's points ``write_csv(tabulate(figure))``;
- JSON: `to_plain` of the records themselves: keys are an interface, titles of columns are not.

`Table.of` makes a row of each record, object or dictionary. A row of a DataFrame is a row of a
table as well: ``Table(rows=frame.itertuples(index=False), ...)``. NaN and None are shown as a dash
in columns of numbers.
"""

import csv
import io
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kernelcast.records.private_files import writing
from kernelcast.reports import numbers
from kernelcast.reports.charts import Axis, Figure

if TYPE_CHECKING:  # slow to load
    from jinja2 import Environment
    from markupsafe import Markup
    from rich.console import RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

_UNLIMITED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Cell:
    """A text in a table with a remark on it."""

    text: str
    remark: str = ""
    """Stands below it on pages."""
    hint: str = ""
    """Is shown on pages where the remark is pointed at."""
    mark: str = ""
    """Stands behind it in brackets on terminals, which show no remarks."""

    def __str__(self) -> str:
        return f"{self.text} ({self.mark})" if self.mark else self.text


Value = str | float | Cell | Sequence[Cell] | None
"""What a row holds: a number, a text, a text with a remark, or several that stand in lines."""
Field = str | Callable[[Any], Value]
"""What a column shows of a record: a name, a path of names, or a function of the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of raw values under titles; the columns' units decide how they are written."""

    columns: Mapping[str, str]
    """Units by the titles of columns; see `numbers.WRITERS`."""
    rows: Iterable[Sequence[Value]]
    """Numbers in the column's unit; a text stands as it is. Give a list or a tuple."""
    title: str = ""
    note: str = ""
    chosen: Collection[int] = ()
    """Numbers of the rows that stand out, from 0."""
    breaks: Collection[int] = ()
    """Numbers of the rows above which a line is drawn, from 0."""
    stacks: Sequence[Sequence[str]] = ()
    """Titles that stand above each other, in one column, on a terminal too narrow for the table.
    Its rows are then divided by lines."""

    @classmethod
    def of(
        cls,
        records: Iterable[Any],
        columns: Mapping[str, str | tuple[str, Field]],
        **about: Any,  # noqa: ANN401 - fields of the table
    ) -> "Table":
        """Make a row of each record; without a field, a column shows what its title names."""
        pairs = {
            title: (one, title.replace(" ", "_")) if isinstance(one, str) else one
            for title, one in columns.items()
        }
        return cls(
            columns={title: unit for title, (unit, _) in pairs.items()},
            rows=[[_read(one, field) for _, field in pairs.values()] for one in records],
            **about,
        )

    def texts(self) -> list[list[str]]:
        writers = [_choose_writer(unit) for unit in self.columns.values()]
        return [
            [_write(value, writer) for value, writer in zip(row, writers, strict=True)]
            for row in self.rows
        ]

    def without(self, *titles: str) -> "Table":
        kept = [place for place, title in enumerate(self.columns) if title not in titles]
        return replace(
            self,
            columns={one: unit for one, unit in self.columns.items() if one not in titles},
            rows=[[row[place] for place in kept] for row in self.rows],
            stacks=[[one for one in stack if one not in titles] for stack in self.stacks],
        )

    def without_empty(self, *titles: str) -> "Table":
        """Leave those of these columns out that have nothing to show."""
        places = {title: place for place, title in enumerate(self.columns)}
        rows = [*self.rows]
        return self.without(
            *(one for one in titles if all(row[places[one]] in (None, "") for row in rows))
        )


def _read(record: Any, field: Field) -> Any:  # noqa: ANN401 - records hold anything
    if not isinstance(field, str):
        return field(record)
    for name in field.split("."):
        if record is not None:
            record = record[name] if isinstance(record, Mapping) else getattr(record, name)
    return record


def _choose_writer(unit: str) -> Callable[[Any], str]:
    return numbers.WRITERS.get(unit) or (lambda value: format(value, unit))


def _write(value: Value, writer: Callable[[Any], str]) -> str:
    if isinstance(value, str | Cell):
        return str(value)
    if isinstance(value, Sequence):
        return "\n".join(map(str, value)) or numbers.NOTHING
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "" if writer is str else numbers.NOTHING
    return writer(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    title: str
    parts: Sequence["Part"]
    about: str = ""
    """Stands below the title in softer ink."""


Part = str | Mapping[str, str] | Table | Figure | Section


def make_renderable(
    part: Part, *, width: int = _UNLIMITED, is_first: bool = False
) -> "RenderableType | None":
    from rich.console import Console, Group
    from rich.text import Text

    if isinstance(part, str):
        return Text(part)
    if isinstance(part, Figure):
        return None
    if isinstance(part, Table):
        wide = _make_rich_table(part, [(column,) for column in part.columns])
        is_wide = not part.stacks or Console(width=_UNLIMITED).measure(wide).maximum <= width
        return wide if is_wide else _make_rich_table(part, part.stacks, is_stacked=True)
    if isinstance(part, Section):
        made = [make_renderable(one, width=width) for one in part.parts]
        head = Text.assemble(
            "" if is_first else "\n", (part.title, "bold"), f"\n{part.about}" if part.about else ""
        )
        return Group(head, *(one for one in made if one is not None))
    return Group(*(Text(f"{name}: {text}".replace("\n", "\n  ")) for name, text in part.items()))


def _make_rich_table(
    table: Table, stacks: Sequence[Sequence[str]], *, is_stacked: bool = False
) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
        title=table.title or None, title_justify="left", title_style="bold",
        caption=table.note or None, caption_justify="left", show_lines=is_stacked,
    )  # fmt: skip
    groups = [stack for stack in stacks if stack]
    places = {title: place for place, title in enumerate(table.columns)}
    for number, stack in enumerate(groups):
        is_text = table.columns[stack[0]] in {"text", "code"}
        titles = [one.replace("\n", " ") for one in stack] if is_stacked else stack
        made.add_column(
            "\n".join(titles), justify="left" if is_text else "right", overflow="fold",
            no_wrap=not number and is_text and len(groups) > 1, vertical="bottom",
        )  # fmt: skip
    for number, row in enumerate(table.texts()):
        if number in table.breaks:
            made.add_section()
        style = "bold" if number in table.chosen else ""
        cells = ["\n".join(row[places[title]] for title in stack) for stack in groups]
        made.add_row(*(
            _paint_code(cell, style) if table.columns[stack[0]] == "code" else Text(cell, style)
            for stack, cell in zip(groups, cells, strict=True)
        ))  # fmt: skip
    for column in made.columns:
        column.vertical = "top"
    return made


def _paint_code(cell: str, style: str) -> "Text":
    from rich.syntax import Syntax

    line, *remarks = cell.split("\n")
    painted = Syntax("", "c", theme="ansi_light").highlight(line)
    painted.rstrip()
    painted.stylize(style)
    for one in remarks:
        painted.append(f"\n{one}", "dim")
    return painted


def write_csv(table: Table) -> str:
    """Write a table as CSV: titles in one line, numbers raw in the units of the columns."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(column.replace("\n", " ") for column in table.columns)
    writer.writerows(
        [one if isinstance(one, str | float | int | None) else _write(one, str) for one in row]
        for row in table.rows
    )
    return text.getvalue()


def tabulate(figure: Figure) -> Table:
    """Make a table of the points of a figure, series by series; guides are left out."""
    x, y = (
        f"{one.title or usual}{f' [{one.unit}]' if one.unit else ''}"
        for one, usual in ((figure.charts[0].x, "name"), (figure.charts[0].y, "value"))
    )
    columns = {"series": "text", x: "value", y: "value", "low": "value", "high": "value",
               "label": "text"}  # fmt: skip

    def place(value: float, axis: Axis) -> float | str:
        if axis.names:
            return axis.names[int(value)]
        return datetime.fromtimestamp(value, UTC).isoformat() if axis.unit == "moment" else value

    rows = [
        (
            f"{chart.title}: {one.name}" if chart.title else one.name, place(at.x, chart.x),
            at.y, at.low, at.high, at.label,
        )
        for chart in figure.charts
        for one in chart.series
        if one.kind != "guide"
        for at in one.points
    ]  # fmt: skip
    return Table(columns=columns, rows=rows)


def save_page(path: Path, title: str, *parts: Part) -> None:
    """Write a page to one HTML file, which needs no network."""
    document = _templates().get_template("document.html").module.document  # type: ignore[attr-defined]
    with writing(path, "the report"):
        path.write_text(str(document(title, make_html(*parts))), encoding="utf-8")


def make_html(*parts: Part, level: int = 1, within: str = "") -> "Markup":
    """Make the HTML of parts; texts are escaped, `level` is that of the sections' headings."""
    from markupsafe import Markup

    write: Any = _templates().get_template("document.html").module.part  # type: ignore[attr-defined]
    return Markup("\n").join(Markup(write(_prepare(part, level, within))) for part in parts)


def _prepare(part: Part, level: int, within: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"kind": "text", "text": part}
    if isinstance(part, Table):
        units = part.columns.values()
        return {
            "kind": "table", "table": part, "within": within,
            "columns": [(one, unit != "text") for one, unit in part.columns.items()],
            "rows": [
                [_prepare_cell(value, unit) for value, unit in zip(row, units, strict=True)]
                for row in part.rows
            ],
        }  # fmt: skip
    if isinstance(part, Figure):
        from markupsafe import Markup

        from kernelcast.reports.drawing import draw_svg

        return {
            "kind": "figure", "caption": part.caption,
            "svg": Markup(draw_svg(part, is_inline=True)),
        }  # fmt: skip
    if isinstance(part, Section):
        return {
            "kind": "section", "level": level, "title": part.title, "about": part.about,
            "body": make_html(*part.parts, level=level + 1, within=part.title),
        }  # fmt: skip
    return {"kind": "entries", "entries": part}


def _prepare_cell(value: Value, unit: str) -> dict[str, Any]:
    is_number = isinstance(value, float | int) and not math.isnan(value)
    lines = [value] if isinstance(value, Cell) else value if isinstance(value, Sequence) else ()
    if isinstance(value, str) or not isinstance(value, Cell | Sequence):
        lines = [Cell(_write(value, _choose_writer(unit)))]
    return {
        "lines": lines, "value": value if is_number else "", "is_number": unit != "text",
        "is_raw": unit not in {"text", "number"},
    }  # fmt: skip


def make_environment(*folders: Path) -> "Environment":
    """Make an environment of the templates in these folders and of the presenter's."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=FileSystemLoader([*folders, Path(__file__).parent / "templates"]),
        autoescape=select_autoescape(), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters.update(
        seconds=numbers.format_seconds, share=numbers.format_share, range=numbers.format_range
    )
    return made


def write_lines(template: str, **values: object) -> list[str]:
    return _templates().get_template(template).render(values).splitlines()


@cache
def _templates() -> "Environment":
    return make_environment()
