// Counts bytes by their upper six bits. Every work-item has its own counters of one byte each in
// local memory, so no atomics are needed; it sees at most 240 bytes, so no counter overflows. The
// counters of a class lie beside each other; their order mixes the bits of the work-item's number,
// so that neighbours do not write to the same four bytes of a bank.
#define BINS 64
#define VECTORS_PER_ITEM 15

inline void count_four(__local uchar *counters, const uint lane, const uint lanes, const uint word)
{
    counters[((word >> 2) & 63) * lanes + lane]++;
    counters[((word >> 10) & 63) * lanes + lane]++;
    counters[((word >> 18) & 63) * lanes + lane]++;
    counters[(word >> 26) * lanes + lane]++;
}

__kernel void histogram64(__global uint *restrict partial_histograms,
                          __global const uint4 *restrict data,
                          __local uchar *counters)
{
    const uint local_id = get_local_id(0);
    const uint lanes = get_local_size(0);
    const uint lane = (local_id & ~63u) | ((local_id & 15) << 2) | ((local_id & 48) >> 4);

    for (uint bin = 0; bin < BINS; ++bin) {
        counters[bin * lanes + local_id] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const uint begin = get_group_id(0) * lanes * VECTORS_PER_ITEM + local_id;
    for (uint k = 0; k < VECTORS_PER_ITEM; ++k) {
        const uint4 words = data[begin + k * lanes];
        count_four(counters, lane, lanes, words.x);
        count_four(counters, lane, lanes, words.y);
        count_four(counters, lane, lanes, words.z);
        count_four(counters, lane, lanes, words.w);
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    // each of the first work-items adds up a class, beginning at a counter of its own
    if (local_id < BINS) {
        uint sum = 0;
        uint position = local_id & (lanes - 1);
        for (uint k = 0; k < lanes; ++k) {
            sum += counters[local_id * lanes + position];
            position = (position + 1) & (lanes - 1);
        }
        partial_histograms[get_group_id(0) * BINS + local_id] = sum;
    }
}
