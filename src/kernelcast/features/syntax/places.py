"""Where things stand in the source: byte offsets, lines, columns."""

import ctypes
from bisect import bisect_right
from dataclasses import dataclass

from kernelcast.features.syntax import bindings as clang

_IN_MACRO = 1 << 31


@dataclass(frozen=True, slots=True)
class Span:
    """A range of bytes of the source, encoded as UTF-8."""

    start: int
    end: int
    """First byte and the byte behind the last."""
    is_exact: bool = True
    """False where an end lies within a macro's expansion: then the span is that of the use of the
    macro, and cannot be edited."""


class SourcePlaces:
    """Translates libclang's raw locations to offsets.

    A raw location is the offset in the file plus a base that is the same for all of the file;
    bit 31 marks locations within a macro's expansion (clang's SourceLocation). Reading it
    directly spares four calls per node.

    Parameters
    ----------
    main_file : str
        Its name, as it was given to the parser.
    """

    def __init__(self, source: bytes, main_file: str) -> None:
        self.source = source
        self._main_file = main_file
        self._base: int | None = None
        self._line_starts = [0]
        position = source.find(b"\n")
        while position >= 0:
            self._line_starts.append(position + 1)
            position = source.find(b"\n", position + 1)

    def span(self, cursor: clang.CXCursor) -> Span | None:
        """Give a cursor's range; None if it is not in the main file."""
        extent = clang.cursor_extent(cursor)
        if not (extent.begin & _IN_MACRO or extent.end & _IN_MACRO):
            base = self._find_base(extent)
            if base is None:
                return None
            start, end = extent.begin - base, extent.end - base
            return Span(start, end) if 0 <= start <= end <= len(self.source) else None
        return self._span_of_expansion(extent)

    def line_of(self, offset: int) -> int:
        """Give the line of a byte, from 1."""
        return bisect_right(self._line_starts, offset)

    def column_of(self, offset: int) -> int:
        """Give the column of a byte, from 1."""
        return offset - self._line_starts[self.line_of(offset) - 1] + 1

    def text(self, span: Span) -> str:
        """Give the source text of a range."""
        return self.source[span.start : span.end].decode(errors="replace")

    def _find_base(self, extent: clang.CXSourceRange) -> int | None:
        if self._base is None:
            name, offset = _locate(clang.range_start(extent))
            if name == self._main_file:
                self._base = extent.begin - offset
        return self._base

    def _span_of_expansion(self, extent: clang.CXSourceRange) -> Span | None:
        """Give the range of a macro's use, or of its argument where the code is one."""
        ends = [_locate(end) for end in (clang.range_start(extent), clang.range_end(extent))]
        if any(name != self._main_file for name, _ in ends):
            return None
        start, end = ends[0][1], ends[1][1]
        return Span(start, max(start, end), is_exact=False)


def _locate(place: clang.CXSourceLocation) -> tuple[str, int]:
    """Give file and offset of a place."""
    handle, offset = ctypes.c_void_p(), ctypes.c_uint()
    clang.file_location(place, ctypes.byref(handle), None, None, ctypes.byref(offset))
    return clang.take_string(clang.file_name(handle)) if handle else "", offset.value
