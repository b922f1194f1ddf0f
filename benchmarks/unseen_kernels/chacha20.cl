/* ChaCha20: a block of 64 bytes of key stream per work-item, over the text. */
#define ROTL(v, n) rotate(v, (uint)(n))
#define QUARTER(a, b, c, d)              \
    s[a] += s[b]; s[d] = ROTL(s[d] ^ s[a], 16); \
    s[c] += s[d]; s[b] = ROTL(s[b] ^ s[c], 12); \
    s[a] += s[b]; s[d] = ROTL(s[d] ^ s[a], 8);  \
    s[c] += s[d]; s[b] = ROTL(s[b] ^ s[c], 7);

__kernel void chacha20(__global const uint *text, __global uint *cipher, __constant uint *key,
                       uint counter, ulong nonce)
{
    const size_t block = get_global_id(0);
    uint s[16], first[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    for (int i = 0; i < 8; i++)
        first[4 + i] = key[i];
    first[12] = counter + (uint)block;
    first[13] = 0;
    first[14] = (uint)nonce;
    first[15] = (uint)(nonce >> 32);
    for (int i = 0; i < 16; i++)
        s[i] = first[i];
    for (int round = 0; round < 10; round++) {
        QUARTER(0, 4, 8, 12) QUARTER(1, 5, 9, 13) QUARTER(2, 6, 10, 14) QUARTER(3, 7, 11, 15)
        QUARTER(0, 5, 10, 15) QUARTER(1, 6, 11, 12) QUARTER(2, 7, 8, 13) QUARTER(3, 4, 9, 14)
    }
    for (int i = 0; i < 16; i++)
        cipher[16 * block + i] = text[16 * block + i] ^ (s[i] + first[i]);
}
