"""Digests of what callers' buffers hold; who asks again is answered at the speed of memory.

Small ones are kept under SHA-256 digests, as contents of files are. Of larger ones that would take
longer than an answer (64 MiB: 34 ms); XXH3 reads as fast as memory (2 ms).
"""

import hashlib
from collections.abc import Iterator
from typing import Final

import numpy as np
import xxhash

from kernelcast.records.device import DeviceKind
from kernelcast.sampling.mapping import map_memory, unmap_memory
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

MOST_HELD_BYTES: Final = 2**26
"""Of larger buffers, pieces all over tell contents apart: to read all might take longer than to
sample."""
_PIECE_BYTES = 2**20
_SMALL_BYTES = 2**20


def digest_buffer(session: DeviceSession, buffer: cl.Buffer) -> str:
    """Give what tells the content of a caller's buffer apart.

    Parameters
    ----------
    session : DeviceSession
        Of the buffer's context, locked.
    buffer : pyopencl.Buffer
        The buffer.
    """
    found = hashlib.sha256() if buffer.size <= _SMALL_BYTES else xxhash.xxh3_128()
    for part in _read_pieces(session, buffer):
        found.update(part)
    return found.hexdigest()


def _read_pieces(session: DeviceSession, buffer: cl.Buffer) -> Iterator[memoryview]:
    """Give a buffer piece by piece; each holds until the next is asked for."""
    if session.description.kind is DeviceKind.CPU:
        whole = buffer.size if buffer.size <= MOST_HELD_BYTES else _PIECE_BYTES
        for start in _list_starts(buffer.size, whole):
            size = min(whole, buffer.size - start)
            mapped = map_memory(session.queue, buffer, size, cl.map_flags.READ, first_byte=start)
            try:
                yield mapped.data
            finally:
                unmap_memory(session.queue, mapped)
        return
    # In the same memory: to get that much anew takes longer than to read and hash it.
    piece = np.empty(min(_PIECE_BYTES, buffer.size), dtype=np.uint8)
    for start in _list_starts(buffer.size, _PIECE_BYTES):
        part = piece[: buffer.size - start]
        cl.enqueue_copy(session.queue, part, buffer, src_offset=start)
        yield part.data


def _list_starts(size: int, piece: int) -> list[int]:
    """Give where pieces begin: one behind the other, or all over a buffer that is too large."""
    if size <= MOST_HELD_BYTES:
        return [*range(0, size, piece)]
    starts = np.linspace(0, size - piece, MOST_HELD_BYTES // piece)
    return [int(one) for one in starts]
