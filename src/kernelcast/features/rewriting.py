"""Edits of a source at byte offsets, collected in any order and applied at once."""

from dataclasses import dataclass
from operator import attrgetter

from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """Bytes `start` to `end` become `text`; equal bounds insert.

    `side` orders what meets at one offset: 0 closes what ends there, 1 opens what begins there.
    `rank` orders edits of one side.
    """

    start: int
    end: int
    side: int
    rank: int
    text: bytes


class SourceEdits:
    """Insertions and replacements in one source, which stays as it is until `apply`.

    Parameters
    ----------
    source : str
        The text; offsets count the bytes of its UTF-8 form, as libclang's do.

    Notes
    -----
    At one offset texts stand in this order: what was inserted *after* a range that ends there,
    what was inserted *before* a range that begins there, the range or its replacement. So edits
    of neighbouring ranges never swap. Insertions nest as brackets do: of several texts before one
    place the latest stands outermost (first), of several after one place too (last); whoever
    wraps inner ranges first and outer ones later gets well-formed brackets.

    Examples
    --------
    >>> edits = SourceEdits("a = b;")
    >>> edits.wrap(4, 5, "(", ")")
    >>> edits.wrap(4, 5, "[", "]")
    >>> edits.replace(0, 1, "x")
    >>> edits.apply()
    'x = [(b)];'
    """

    def __init__(self, source: str) -> None:
        self._bytes = source.encode()
        self._edits: list[_Edit] = []

    def insert_before(self, offset: int, text: str) -> None:
        """Put a text before what begins at an offset.

        Raises
        ------
        InputError
            If the offset is outside the source or inside a character.
        """
        # Later texts stand further out, that is, further left.
        self._add(offset, offset, text, side=1, rank=-len(self._edits))

    def insert_after(self, offset: int, text: str) -> None:
        """Put a text after what ends at an offset (the first byte behind it).

        Raises
        ------
        InputError
            If the offset is outside the source or inside a character.
        """
        self._add(offset, offset, text, side=0, rank=len(self._edits))

    def wrap(self, start: int, end: int, before: str, after: str) -> None:
        """Put one text before a range of bytes and one after it.

        Raises
        ------
        InputError
            If the range is not one of the source's.
        """
        self._check(start, end)
        self.insert_before(start, before)
        self.insert_after(end, after)

    def replace(self, start: int, end: int, text: str) -> None:
        """Put a text in the place of a range of bytes, which must not be empty.

        Raises
        ------
        InputError
            If the range is empty or is not one of the source's.
        """
        if start == end:
            msg = f"bytes {start} to {end}: an empty range cannot be replaced; insert instead"
            raise InputError(msg)
        self._add(start, end, text, side=1, rank=1)

    def apply(self) -> str:
        """Give the edited source; the edits stay, so that more can be added.

        Raises
        ------
        InputError
            If replaced ranges overlap, or something was inserted inside one.
        """
        parts, position = [], 0
        for edit in sorted(self._edits, key=attrgetter("start", "side", "rank")):
            if edit.start < position:
                msg = (
                    f"bytes {edit.start} to {edit.end}: already replaced up to byte {position}; "
                    "edit each part of a source once"
                )
                raise InputError(msg)
            parts += [self._bytes[position : edit.start], edit.text]
            position = edit.end
        parts.append(self._bytes[position:])
        return b"".join(parts).decode()

    def _add(self, start: int, end: int, text: str, *, side: int, rank: int) -> None:
        self._check(start, end)
        self._edits.append(_Edit(start=start, end=end, side=side, rank=rank, text=text.encode()))

    def _check(self, start: int, end: int) -> None:
        length = len(self._bytes)
        if not 0 <= start <= end <= length:
            msg = f"bytes {start} to {end}: not a range of a source of {length} bytes"
            raise InputError(msg)
        for offset in (start, end):
            if offset < length and self._bytes[offset] & 0xC0 == 0x80:  # a continuation byte
                msg = f"byte {offset}: inside a character of more than one byte; give its first"
                raise InputError(msg)
