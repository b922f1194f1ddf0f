// SHA-256 of many messages, one a work-item. Messages are whole blocks of 64 bytes, between one and
// hundreds of them, so that neighbours end at different times. The schedule of a block keeps 16
// words.
__constant uint CONSTANTS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define TURN(x, n) rotate((x), 32u - (n))

inline uint swap_bytes(const uint word)
{
    return (rotate(word, 8u) & 0x00ff00ffu) | (rotate(word, 24u) & 0xff00ff00u);
}

inline void mix_block(uint *state, uint *words)
{
    uint a = state[0], b = state[1], c = state[2], d = state[3];
    uint e = state[4], f = state[5], g = state[6], h = state[7];
    for (uint i = 0; i < 64; ++i) {
        if (i >= 16) {
            const uint w1 = words[(i + 1) & 15];
            const uint w14 = words[(i + 14) & 15];
            words[i & 15] += (TURN(w1, 7u) ^ TURN(w1, 18u) ^ (w1 >> 3)) + words[(i + 9) & 15]
                             + (TURN(w14, 17u) ^ TURN(w14, 19u) ^ (w14 >> 10));
        }
        const uint first = h + (TURN(e, 6u) ^ TURN(e, 11u) ^ TURN(e, 25u)) + bitselect(g, f, e)
                           + CONSTANTS[i] + words[i & 15];
        const uint second = (TURN(a, 2u) ^ TURN(a, 13u) ^ TURN(a, 22u)) + bitselect(a, b, a ^ c);
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

__kernel void sha256(__global const uint *restrict text, __global const uint *restrict begins,
                     __global uint *restrict digests)
{
    const uint message = get_global_id(0);
    uint state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint words[16];
    const uint begin = begins[message];
    const uint end = begins[message + 1];
    for (uint block = begin; block < end; ++block) {
        for (uint i = 0; i < 16; ++i) {
            words[i] = swap_bytes(text[(size_t)block * 16 + i]);
        }
        mix_block(state, words);
    }
    // the last block holds a single bit and the length in bits
    for (uint i = 0; i < 15; ++i) {
        words[i] = 0;
    }
    words[0] = 0x80000000u;
    words[15] = (end - begin) * 512;
    mix_block(state, words);
    for (uint i = 0; i < 8; ++i) {
        digests[message * 8 + i] = swap_bytes(state[i]);
    }
}
