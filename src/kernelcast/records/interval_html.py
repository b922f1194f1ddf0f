"""A predicted time as a notebook shows it: a small table and a picture, nothing from elsewhere."""

from collections.abc import Sequence
from html import escape
from typing import Final

from kernelcast.records.readable_times import format_seconds

_WIDTH: Final = 360
_MARGIN: Final = 60
"""Room for half a label at each end, in pixels as the width."""
_LINE_AT: Final = 14


def make_table(rows: Sequence[tuple[str, str]], picture: str) -> str:
    """Make an HTML table of names and texts, which are escaped, and a picture below them."""
    lines = (
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows
    )
    last = f'<tr><td colspan="2">{picture}</td></tr>'
    return f"<table>{''.join(lines)}{last}</table>"


def draw_interval(low_s: float, seconds: float, high_s: float, measured_s: float | None) -> str:
    """Draw a prediction as a dot on its interval, and as a stroke what was measured, if it was.

    Returns
    -------
    str
        An SVG element in the colours of the text around it; its title says the same in words.
    """
    times = [low_s, seconds, high_s] + ([] if measured_s is None else [measured_s])
    first, last = min(times), max(times)
    scale = (_WIDTH - 2 * _MARGIN) / ((last - first) or 1.0)
    low, dot, high = (_MARGIN + (one - first) * scale for one in (low_s, seconds, high_s))
    words = f"{format_seconds(seconds)}, from {format_seconds(low_s)} to {format_seconds(high_s)}"
    parts = [
        f'<path d="M{low:.1f} {_LINE_AT}H{high:.1f}M{low:.1f} {_LINE_AT - 5}v10'
        f'M{high:.1f} {_LINE_AT - 5}v10" stroke="currentColor" stroke-width="2" fill="none"/>',
        f'<circle cx="{dot:.1f}" cy="{_LINE_AT}" r="4.5" fill="currentColor"/>',
        _write(low, format_seconds(low_s)),
    ]
    if high - low > _MARGIN:  # the labels do not touch
        parts.append(_write(high, format_seconds(high_s)))
    if measured_s is not None:
        at = _MARGIN + (measured_s - first) * scale
        parts.append(f'<path d="M{at:.1f} {_LINE_AT - 10}v20" stroke="#c2410c" stroke-width="2"/>')
        words += f"; measured {format_seconds(measured_s)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="44" '
        f'viewBox="0 0 {_WIDTH} 44" role="img"><title>{escape(words)}</title>'
        f"{''.join(parts)}</svg>"
    )


def _write(at: float, text: str) -> str:
    return (
        f'<text x="{at:.1f}" y="40" font-size="11" text-anchor="middle" fill="currentColor">'
        f"{escape(text)}</text>"
    )
