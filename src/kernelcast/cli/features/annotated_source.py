"""The source of a kernel with what each line executes beside it."""

import re
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from kernelcast.expressions.accesses import AddressPattern, MemoryAccess
from kernelcast.launches.features import KernelFeatures
from kernelcast.records.source_lines import LineFacts
from kernelcast.reports.source.counts import (
    format_count,
    summarise_memory,
    summarise_operations,
)
from kernelcast.reports.source.expressions import explain, write_address, write_guard
from kernelcast.reports.source.lines import CountedLines, name_pattern

_WIDE = 100
_LONG_SOURCE = 90
_LINES_BEFORE, _LINES_AFTER = 6, 2
_TAB = 4
_BAR_CELLS = 4
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
    AddressPattern.QUASI_AFFINE: "cyan", AddressPattern.POLYNOMIAL: "yellow",
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
    """A kernel's source, annotated, as wide as the terminal allows.

    Parameters
    ----------
    features : KernelFeatures
        The launch; counts are measured ones where a device gave them.
    """

    def __init__(self, features: KernelFeatures) -> None:
        self._features = features
        self._lines = CountedLines(features)

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        is_plain = options.ascii_only
        yield self._make_table(is_wide=options.max_width >= _WIDE, is_plain=is_plain)
        yield Text(self._describe(), style="dim")

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
        code, bar = self._highlight(), "|" if is_plain else "│"
        for number in self._shown(len(code)):
            if number is None:
                table.add_row(*[""] * (len(table.columns) - 2), bar, Text("...", style="dim"))
                continue
            gutter = self._gutter(number, is_wide=is_wide, is_plain=is_plain)
            place = Text(str(number), style=self._style(number))
            table.add_row(*gutter, place, bar, code[number - 1])
            for note in self._notes(number, code[number - 1].plain, is_plain=is_plain):
                table.add_row(*[""] * len(gutter), "", bar, note)
        return table

    def _gutter(self, number: int, *, is_wide: bool, is_plain: bool) -> list[Text | str]:
        facts, share = self._lines.facts.get(number), self._lines.share(number)
        if facts is None or share is None:
            return [""] * (4 if is_wide else 3)
        runs, style = self._lines.count_runs(number), self._style(number)
        cells: list[Text | str] = [Text(format_count(runs), style=style if runs else "dim")]
        if is_wide:
            cells.append(Text(_draw_share(share, is_plain=is_plain), style=style))
        return [*cells, _write_operations(facts, is_dim=not runs), _write_memory(facts)]

    def _style(self, number: int) -> str:
        """Give a line's colour: the hotter, the larger its share of all operations."""
        share = self._lines.share(number)
        if share is None:
            return "dim"
        return next(style for least, style in _HEATS if share >= least)

    def _notes(self, number: int, code: str, *, is_plain: bool) -> Iterator[Table]:
        """Say where each access of a line goes, each place once, indented as the line is."""
        indent = len(code) - len(code.lstrip())
        mark = "`- " if is_plain else "╰╴ "
        for text, style in dict.fromkeys(self._describe_accesses(number)):
            note = Table.grid()
            note.add_column(width=indent + len(mark))
            note.add_column(overflow="fold")
            note.add_row(
                Text(" " * indent + mark, style="dim"), Text(text, style=f"{style} italic")
            )
            yield note

    def _describe_accesses(self, number: int) -> Iterator[tuple[str, str]]:
        for access in self._lines.list_accesses(number):
            yield self._describe_access(access), _PATTERN_STYLES[access.pattern]

    def _describe_access(self, access: MemoryAccess) -> str:
        guard = write_guard(access)
        parts = (
            f"{access.kind} {write_address(access, self._features.facts)}",
            f"if {guard}" if guard else "",
            name_pattern(access),
            self._lines.describe_requests(access),
        )
        return ", ".join(filter(None, parts))

    def _shown(self, lines: int) -> Iterator[int | None]:
        """Give the lines worth showing; None stands for those left out."""
        if lines <= _LONG_SOURCE:
            yield from range(1, lines + 1)
            return
        wanted: set[int] = set()
        for line in (self._features.facts.line, *self._lines.facts):
            wanted.update(range(line - _LINES_BEFORE, line + _LINES_AFTER + 1))
        last = 0
        for line in sorted(one for one in wanted if 1 <= one <= lines):
            if line != last + 1:
                yield None
            yield line
            last = line
        if last < lines:
            yield None

    def _highlight(self) -> list[Text]:
        source = self._features.problem.kernel.source.expandtabs(_TAB)
        syntax = Syntax("", "c", theme="ansi_dark", background_color="default")
        text = syntax.highlight(source)
        _colour_opencl(text)
        lines = text.split("\n", allow_blank=True)
        for line in lines:
            line.rstrip()
        while lines and not lines[-1].plain:
            lines.pop()
        return list(lines)

    def _describe(self) -> str:
        counters = self._lines.counters
        how = "counted by an instrumented run" if counters.instrumented_s else (
            "derived from the source" if counters.is_exact
            else "derived from the source, what depends on data is guessed"
        )  # fmt: skip
        notes = [self._describe_access(one) for one in self._features.facts.accesses]
        legend = explain(notes)
        return (
            f"\nruns: executions per work-item, {how} ({counters.work_items:,} work-items of "
            f"{counters.work_groups} work-groups)\nshare: of all operations executed; operations "
            "and memory: of one execution, vectors by their lanes"
        ) + (f"\n{legend}" if legend else "")


def _colour_opencl(text: Text) -> None:
    """Colour words of OpenCL C, but not in comments."""
    comments = [match.span() for match in _COMMENTS.finditer(text.plain)]
    for pattern, style in _OPENCL:
        for match in pattern.finditer(text.plain):
            if not any(start <= match.start() < end for start, end in comments):
                text.stylize(style, *match.span())


def _draw_share(share: float, *, is_plain: bool) -> str:
    """Draw a bar that fills its cells at one half: few lines have more."""
    filled = min(1.0, 2 * share) * _BAR_CELLS
    if is_plain:
        return "#" * max(round(filled), int(share > 0))
    eighths = max(round(filled * 8), int(share > 0))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _write_operations(facts: LineFacts, *, is_dim: bool) -> Text:
    words: Sequence[tuple[str, str]] = summarise_operations(facts.once)
    text = Text("  ").join(
        Text(word, style="dim" if is_dim else _OPERATION_STYLES[kind]) for kind, word in words
    )
    return text if words else Text()


def _write_memory(facts: LineFacts) -> Text:
    return Text(summarise_memory(facts.once), style="bright_yellow")
