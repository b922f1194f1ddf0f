// AES with keys of 128 bits in counter mode: a work-item encrypts its number and adds that to its
// block. A table of 256 words, which joins the substitution with the mixing of columns, lies in
// local memory and is turned for the other three rows. Words are little-endian: row 0 is the lowest
// byte.
#define ROUNDS 10

inline uint mix_column(__local const uint *table, const uint a, const uint b, const uint c,
                       const uint d)
{
    return table[a & 255] ^ rotate(table[(b >> 8) & 255], 8u)
           ^ rotate(table[(c >> 16) & 255], 16u) ^ rotate(table[d >> 24], 24u);
}

// The second byte of a table entry is the substitution alone.
inline uint substitute(__local const uint *table, const uint a, const uint b, const uint c,
                       const uint d)
{
    return ((table[a & 255] >> 8) & 255) | (table[(b >> 8) & 255] & 0xff00)
           | ((table[(c >> 16) & 255] << 8) & 0xff0000) | ((table[d >> 24] << 16) & 0xff000000);
}

__kernel void aes_ctr(__global const uint4 *restrict plain, __global uint4 *restrict encrypted,
                      __constant uint *round_keys, __global const uint *restrict table_source,
                      const uint nonce)
{
    __local uint table[256];
    for (uint i = get_local_id(0); i < 256; i += get_local_size(0)) {
        table[i] = table_source[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint block = get_global_id(0);
    uint4 state = (uint4)(nonce, 0, 0, block) ^ vload4(0, round_keys);
    for (uint round = 1; round < ROUNDS; ++round) {
        const uint4 mixed = (uint4)(mix_column(table, state.x, state.y, state.z, state.w),
                                    mix_column(table, state.y, state.z, state.w, state.x),
                                    mix_column(table, state.z, state.w, state.x, state.y),
                                    mix_column(table, state.w, state.x, state.y, state.z));
        state = mixed ^ vload4(round, round_keys);
    }
    const uint4 last = (uint4)(substitute(table, state.x, state.y, state.z, state.w),
                               substitute(table, state.y, state.z, state.w, state.x),
                               substitute(table, state.z, state.w, state.x, state.y),
                               substitute(table, state.w, state.x, state.y, state.z));
    encrypted[block] = plain[block] ^ last ^ vload4(ROUNDS, round_keys);
}
