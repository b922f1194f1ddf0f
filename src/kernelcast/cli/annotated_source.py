"""The source of a kernel with what each line executes beside it."""

import re
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from kernelcast.expressions.accesses import AddressPattern
from kernelcast.launches.features import KernelFeatures
from kernelcast.reports.numbers import format_count
from kernelcast.reports.source import AnnotatedLine, annotate, expand_source, explain

_EIGHTHS = " ▏▎▍▌▋▊▉█"
# From cold to hot; a line is as hot as its share of all operations.
_HEATS = (
    (0.30, "bold bright_red"), (0.10, "red"), (0.03, "yellow"), (0.005, "green"), (0.0, "cyan"),
)  # fmt: skip
_OPERATION_STYLES = {
    "float": "bright_green", "special": "bright_magenta", "integer": "bright_blue",
    "other": "bright_yellow",
}  # fmt: skip
_PATTERN_STYLES = {
    "": "cyan", AddressPattern.POLYNOMIAL: "yellow",
    AddressPattern.INDIRECT: "magenta", AddressPattern.UNKNOWN: "red",
}  # fmt: skip
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# What pygments' lexer of C does not know of OpenCL C.
_OPENCL = (
    (re.compile(r"\b(?:__)?(?:kernel|global|local|constant|private|generic)\b"), "bright_magenta"),
    (re.compile(r"\b(?:u?(?:char|short|int|long)|float|double|half)(?:[248]|3|16)?\b"), "cyan"),
    (
        re.compile(r"\b(?:get_\w+|barrier|(?:work|sub)_group_\w+|atom(?:ic)?_\w+|mem_fence)(?=\()"),
        "bright_blue",
    ),
)


class AnnotatedSource:
    """A kernel's source, annotated, as wide as the terminal allows."""

    def __init__(self, features: KernelFeatures) -> None:
        self._features = features
        self._lines = annotate(features)

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        is_plain = options.ascii_only
        yield self._make_table(is_wide=options.max_width >= 100, is_plain=is_plain)
        counters = self._features.best_counters
        how = "counted by an instrumented run" if counters.is_measured else (
            "derived from the source" if counters.is_exact
            else "derived from the source, what depends on data is guessed"
        )  # fmt: skip
        about = (
            f"\nruns: executions per work-item, {how} ({counters.work_items:,} work-items of "
            f"{counters.work_groups} work-groups)\nshare: of all operations executed; operations "
            "and memory: of one execution, vectors by their lanes"
        )
        legend = explain(access.text for line in self._lines for access in line.accesses)
        yield Text(f"{about}\n{legend}" if legend else about, style="dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        table = self._make_table(is_wide=True, is_plain=options.ascii_only)
        wanted = Measurement.get(console, options, table)
        return Measurement(min(wanted.minimum, options.max_width), wanted.maximum)

    def _make_table(self, *, is_wide: bool, is_plain: bool) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("runs", justify="right", no_wrap=True)
        if is_wide:
            table.add_column("share", no_wrap=True)
        table.add_column("operations" if is_wide else "oper.", max_width=None if is_wide else 9)
        table.add_column("memory" if is_wide else "mem.", max_width=None if is_wide else 4)
        table.add_column("", justify="right", style="dim", no_wrap=True, min_width=4)
        table.add_column("", style="dim", width=1)
        table.add_column(self._features.problem.kernel.source_name, overflow="fold")
        source = expand_source(self._features)
        syntax = Syntax("", "c", theme="ansi_dark", background_color="default")
        text = syntax.highlight(source)
        # Colour words of OpenCL C, but not in comments.
        comments = [match.span() for match in _COMMENTS.finditer(text.plain)]
        for pattern, style in _OPENCL:
            for match in pattern.finditer(text.plain):
                if not any(start <= match.start() < end for start, end in comments):
                    text.stylize(style, *match.span())
        lines = text.split("\n", allow_blank=True)
        for row in lines:
            row.rstrip()
        while lines and not lines[-1].plain:
            lines.pop()
        code, bar = list(lines), "|" if is_plain else "│"
        for number in self._shown(len(code)):
            if number is None:
                table.add_row(*[""] * (len(table.columns) - 2), bar, Text("...", style="dim"))
                continue
            line = self._lines[number - 1]
            gutter = _make_gutter(line, is_wide=is_wide, is_plain=is_plain)
            place = Text(str(number), style=_choose_style(line))
            table.add_row(*gutter, place, bar, code[number - 1])
            # Where each access goes stands below, indented as the line is.
            indent, mark = len(line.code) - len(line.code.lstrip()), "`- " if is_plain else "╰╴ "
            for access in line.accesses:
                note = Table.grid()
                note.add_column(width=indent + len(mark))
                note.add_column(overflow="fold")
                style = f"{_PATTERN_STYLES[access.pattern]} italic"
                note.add_row(Text(" " * indent + mark, style="dim"), Text(access.text, style=style))
                table.add_row(*[""] * len(gutter), "", bar, note)
        return table

    def _shown(self, lines: int) -> Iterator[int | None]:
        """List the lines worth showing; None stands for those left out."""
        if lines <= 90:
            yield from range(1, lines + 1)
            return
        wanted: set[int] = set()
        counted = (one.number for one in self._lines if one.runs is not None)
        for line in (self._features.facts.line, *counted):
            wanted.update(range(line - 6, line + 3))
        last = 0
        for line in sorted(one for one in wanted if 1 <= one <= lines):
            if line != last + 1:
                yield None
            yield line
            last = line
        if last < lines:
            yield None


def _make_gutter(line: AnnotatedLine, *, is_wide: bool, is_plain: bool) -> list[Text | str]:
    if line.runs is None:
        return [""] * (4 if is_wide else 3)
    style = _choose_style(line)
    cells: list[Text | str] = [Text(format_count(line.runs), style=style if line.runs else "dim")]
    if is_wide:
        # A bar fills its four cells at one half: few lines have more.
        parts = 1 if is_plain else 8
        filled = max(round(min(1.0, 2 * line.share) * 4 * parts), int(line.share > 0))
        whole, rest = divmod(filled, parts)
        bar = "#" * whole if is_plain else "█" * whole + _EIGHTHS[rest].strip()
        cells.append(Text(bar, style=style))
    operations = Text("  ").join(
        Text(word, style=_OPERATION_STYLES[kind] if line.runs else "dim")
        for kind, word in line.operations
    )
    return [*cells, operations, Text(line.memory, style="bright_yellow")]


def _choose_style(line: AnnotatedLine) -> str:
    """Choose a line's colour: the hotter, the larger its share of all operations."""
    if line.runs is None:
        return "dim"
    return next(style for least, style in _HEATS if line.share >= least)
