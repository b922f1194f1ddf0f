"""Cryptography, compression, texts and sequences of bases."""

import numpy as np
from numpy import float32, int32, uint8, uint16, uint32, uint64
from numpy.random import Generator

from unseen_kernels.cases import (
    Buffer,
    Case,
    Content,
    Restored,
    case,
    random_floats,
    random_words,
    round_up,
    zeros,
)


@case
def chacha20(rng: Generator) -> Case:
    """Encrypt 16 MiB."""
    blocks = 1 << 18
    words = Buffer(random_words(rng, 16 * blocks))
    key = Buffer(random_words(rng, 8))
    arguments = (words, zeros(16 * blocks, dtype=uint32), key, uint32(1), uint64(7 << 40))
    return Case("chacha20", "chacha20", (blocks,), (64,), arguments)


@case
def keccak_leaves(rng: Generator) -> Case:
    """Hash leaves of 136 bytes."""
    leaves = 1 << 17
    words = Buffer(rng.integers(0, 1 << 63, leaves * 17).astype(uint64))
    return Case(
        "keccak_leaves", "keccak_leaves", (leaves,), None, (words, zeros(leaves * 4, dtype=uint64))
    )


@case
def md5_search(rng: Generator) -> Case:
    """Try 2^19 numbers."""
    del rng
    arguments = (zeros(1, dtype=uint32), uint32(0x6B636173), uint32(0x12345678))
    return Case("md5_search", "md5_search", (1 << 15,), (128,), arguments)


@case
def reed_solomon(rng: Generator) -> Case:
    """Protect 4 MiB of interleaved data."""
    stripes = 1 << 17
    data = Buffer(rng.integers(0, 256, (32, stripes), dtype=uint8))
    generator = Buffer(np.array([15, 54, 120, 64], uint8))
    arguments = (data, zeros(stripes, 4, dtype=uint8), generator, uint32(stripes))
    return Case("reed_solomon", "rs_encode", (stripes,), (256,), arguments)


@case
def bit_pack(rng: Generator) -> Case:
    """Pack two million numbers of a column into 11 bits each."""
    frames, bits = 1 << 16, 11
    column = Buffer((rng.integers(0, 1 << bits, (frames, 32)) + 10**6).astype(int32))
    arguments = (
        column,
        zeros(frames * bits, dtype=uint32),
        zeros(frames, dtype=int32),
        int32(bits),
    )
    return Case("bit_pack", "bit_pack", (frames,), (64,), arguments)


def make_codes(rng: Generator, count: int) -> tuple[Content, Content, Content]:
    """Give codes of 11 bits at most as a table, numbers of symbols, and their lengths."""
    lengths = np.sort(np.array([3] * 4 + [5] * 8 + [7] * 16 + [9] * 32 + [11] * 128))
    table = np.repeat(np.arange(len(lengths)) | lengths << 8, 1 << (11 - lengths))
    table = np.resize(table, 2048).astype(uint16)
    symbols = rng.choice(len(lengths), count, p=0.5**lengths / (0.5**lengths).sum())
    return table, symbols, lengths


@case
def huffman_decode(rng: Generator) -> Case:
    """Decode blocks of 256 symbols."""
    blocks, each = 8192, 256
    table, symbols, lengths = make_codes(rng, blocks * each)
    ends = np.cumsum(lengths[symbols])
    starts = np.concatenate([[0], ends])[: blocks * each : each].astype(uint32)
    codes = np.concatenate([[0], np.cumsum(1 << (11 - lengths))])[:-1] >> (11 - lengths)
    places = np.repeat(ends - 1, lengths[symbols]) - np.arange(ends[-1])
    bits = np.repeat(codes[symbols], lengths[symbols]) >> places & 1
    packed = np.packbits(np.resize(bits.astype(uint8), int(ends[-1]) // 32 * 32 + 128))
    words = Buffer(packed.view(">u4").astype(uint32))
    decoded = zeros(blocks * each, dtype=uint8)
    arguments = (words, Buffer(starts), Buffer(table), decoded, int32(each))
    return Case("huffman_decode", "huffman", (blocks,), (32,), arguments)


@case
def aho_corasick(rng: Generator) -> Case:
    """Count 300 words in 8 MiB of text."""
    letters = np.frombuffer(b"etaoinshrdlcumwfgypb", uint8) & 31
    pieces, piece, overlap = 1 << 14, 512, 7
    trie: list[dict[int, int]] = [{}]
    ends = {0: 0}
    for _ in range(300):
        state = 0
        for letter in rng.choice(letters, int(rng.integers(3, 9))).tolist():
            if letter not in trie[state]:
                trie[state][letter] = len(trie)
                trie.append({})
            state = trie[state][letter]
        ends[state] = 1
    following = np.zeros((len(trie), 32), int32)
    fallback, queue = [0] * len(trie), [0]
    for state in queue:
        for letter in range(32):
            back = following[fallback[state], letter] if state else 0
            child = trie[state].get(letter)
            following[state, letter] = back if child is None else child
            if child is not None:
                fallback[child] = int(back)
                ends[child] = ends.get(child, 0) | ends.get(int(back), 0)
                queue.append(child)
    is_end = np.array([ends.get(state, 0) for state in range(len(trie))], uint8)
    length = pieces * piece
    text = Buffer(rng.choice(letters, length).astype(uint8))
    hits = zeros(pieces, dtype=int32)
    numbers = (uint32(piece), uint32(overlap), uint32(length))
    arguments = (text, Buffer(following), Buffer(is_end), hits, *numbers)
    return Case("aho_corasick", "scan_text", (pieces,), (64,), arguments)


@case
def kmer_canonical(rng: Generator) -> Case:
    """Code all 21-mers of a genome of four million bases."""
    n = 1 << 22
    bases = Buffer(rng.choice(np.frombuffer(b"ACTG", uint8), n))
    arguments = (bases, zeros(n, dtype=uint64), uint32(n))
    return Case("kmer_canonical", "kmers", (n // 16,), (128,), arguments)


@case
def pair_hmm(rng: Generator) -> Case:
    """Compare 10,000 reads with a haplotype of 200 bases."""
    count, length, read = 10_000, 200, 48
    haplotype = rng.integers(0, 4, length).astype(uint8)
    reads = np.stack([haplotype[s : s + read] for s in rng.integers(0, length - read, count)])
    errors = Buffer(random_floats(rng, read, count) * 0.05 + 0.001)
    numbers = (int32(length), int32(count))
    arguments = (Buffer(reads.T.copy()), errors, Buffer(haplotype), zeros(count), *numbers)
    return Case("pair_hmm", "pair_hmm", (round_up(count, 32),), (32,), arguments)


@case
def nussinov_diagonal(rng: Generator) -> Case:
    """Fold 2,000 bases: the diagonal of intervals of 700."""
    n, d = 2000, 700
    i, j = np.indices((n, n))
    known = np.where(j - i < d, np.maximum(j - i, 0) // 3, 0).astype(int32)
    arguments = (Restored(known), Buffer(rng.integers(0, 4, n).astype(uint8)), int32(n), int32(d))
    return Case("nussinov_diagonal", "fold", (round_up(n - d, 64),), (64,), arguments)


@case
def fm_index(rng: Generator) -> Case:
    """Count 200,000 words of 16 bases in a genome of a million."""
    length, reads = 1 << 20, 200_000
    bwt = rng.integers(0, 4, length)
    one_hot = bwt[:, None] == np.arange(4)
    before = np.cumsum(one_hot.reshape(-1, 64, 4).sum(axis=1), axis=0, dtype=uint32)
    blocks = np.zeros(length // 64 + 1, [("before", uint32, 4), ("low", uint64), ("high", uint64)])
    blocks["before"][1:] = before
    for name, shift in (("low", 0), ("high", 1)):
        bits = np.packbits((bwt >> shift & 1).astype(uint8), bitorder="little")
        blocks[name][:-1] = bits.view(uint64)
    firsts = Buffer(np.concatenate([[0], np.cumsum(one_hot.sum(axis=0))[:3]]).astype(uint32))
    asked = Buffer(random_words(rng, reads))
    arguments = (Buffer(blocks), firsts, asked, zeros(reads, dtype=uint32), uint32(length))
    return Case("fm_index", "count_reads", (reads,), None, arguments)


@case
def halton_basket(rng: Generator) -> Case:
    """Price a basket at a million points."""
    del rng
    points = 1 << 20
    sigmas = Buffer(np.array([0.2, 0.3, 0.25, 0.15, 0.4, 0.1], float32))
    return Case(
        "halton_basket",
        "basket",
        (points,),
        (256,),
        (zeros(points), sigmas, uint32(1), float32(95)),
    )
