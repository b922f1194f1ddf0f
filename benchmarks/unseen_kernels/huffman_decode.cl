// Decodes blocks of canonical Huffman codes through a table of 11 bits; a block per work-item.
kernel void huffman(global const uint *words, global const uint *starts, global const ushort *table,
                    global uchar *symbols, int per_block)
{
    int b = get_global_id(0);
    uint bit = starts[b];
    for (int i = 0; i < per_block; i++) {
        uint w = bit >> 5, o = bit & 31;
        ulong window = (ulong)words[w] << 32 | words[w + 1];
        ushort entry = table[(uint)(window >> (53 - o)) & 2047];
        symbols[b * per_block + i] = entry & 255;
        bit += entry >> 8;
    }
}
