// Counts the 256 values of a digit of each tile of 4096 keys, for a pass of a radix sort. Keys are
// floating point: their bits are turned so that whole numbers sort alike. Counts of a digit lie
// beside each other, a tile after the other, as the prefix sums to come want them.
#define DIGITS 256
#define TILE 4096

__kernel void digit_counts(__global const float *restrict keys, __global uint *restrict counts,
                           const uint shift)
{
    __local uint tile_counts[DIGITS];
    const uint lane = get_local_id(0);
    const uint lanes = get_local_size(0);
    const uint tile = get_group_id(0);
    for (uint i = lane; i < DIGITS; i += lanes) {
        tile_counts[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lane; i < TILE; i += lanes) {
        const uint bits = as_uint(keys[(size_t)tile * TILE + i]);
        const uint key = bits ^ ((bits >> 31) != 0 ? 0xffffffffu : 0x80000000u);
        atomic_inc(tile_counts + (key >> shift & (DIGITS - 1)));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lane; i < DIGITS; i += lanes) {
        counts[(size_t)i * get_num_groups(0) + tile] = tile_counts[i];
    }
}
