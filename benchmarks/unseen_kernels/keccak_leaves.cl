// Keccak-f[1600] over leaves of a Merkle tree: 136 bytes in, 32 bytes out, a leaf per work-item.
constant ulong iota[24] = {
    0x0000000000000001UL, 0x0000000000008082UL, 0x800000000000808aUL, 0x8000000080008000UL,
    0x000000000000808bUL, 0x0000000080000001UL, 0x8000000080008081UL, 0x8000000000008009UL,
    0x000000000000008aUL, 0x0000000000000088UL, 0x0000000080008009UL, 0x000000008000000aUL,
    0x000000008000808bUL, 0x800000000000008bUL, 0x8000000000008089UL, 0x8000000000008003UL,
    0x8000000000008002UL, 0x8000000000000080UL, 0x000000000000800aUL, 0x800000008000000aUL,
    0x8000000080008081UL, 0x8000000000008080UL, 0x0000000080000001UL, 0x8000000080008008UL};
constant uchar turn[24] = {1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44};
constant uchar lane[24] = {10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1};

kernel void keccak_leaves(global const ulong *leaves, global ulong *digests)
{
    ulong a[25], c[5];
    size_t id = get_global_id(0);
    for (int i = 0; i < 25; i++)
        a[i] = i < 17 ? leaves[id * 17 + i] : 0;
    for (int r = 0; r < 24; r++) {
        for (int x = 0; x < 5; x++)
            c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
        for (int x = 0; x < 5; x++) {
            ulong d = c[(x + 4) % 5] ^ rotate(c[(x + 1) % 5], 1UL);
            for (int y = 0; y < 25; y += 5)
                a[y + x] ^= d;
        }
        ulong carried = a[1];
        for (int i = 0; i < 24; i++) {
            ulong next = a[lane[i]];
            a[lane[i]] = rotate(carried, (ulong)turn[i]);
            carried = next;
        }
        for (int y = 0; y < 25; y += 5) {
            for (int x = 0; x < 5; x++)
                c[x] = a[y + x];
            for (int x = 0; x < 5; x++)
                a[y + x] = c[x] ^ (~c[(x + 1) % 5] & c[(x + 2) % 5]);
        }
        a[0] ^= iota[r];
    }
    for (int i = 0; i < 4; i++)
        digests[id * 4 + i] = a[i];
}
