// Gridding of scattered MRI samples: their tiles are found and counted (binning), keys of tiles are
// sorted digit by digit (sort within blocks, rearrange between them), samples are brought into
// that order (reorder), and each cell of the grid sums the samples near it (gridding).

// A tile is TILE_X x TILE_Y x TILE_Z cells, which is also a work-group of gridding.
#define TILE_X 8
#define TILE_Y 4
#define TILE_Z 4
#define TILE_CELLS (TILE_X * TILE_Y * TILE_Z)

// Finds the tile of each sample (x, y, z in cells, then the density correction) and counts the
// samples of each tile. Trajectories cross the middle of k-space again and again, so that some
// counters are in great demand.
__kernel void binning(__global const float4 *restrict sample,
                      __global uint *restrict keys,
                      __global uint *restrict values,
                      __global uint *restrict tile_counts,
                      const int tiles_x,
                      const int tiles_y)
{
    const uint i = get_global_id(0);
    const float4 one = sample[i];
    const int x = (int)(one.x * (1.0f / TILE_X));
    const int y = (int)(one.y * (1.0f / TILE_Y));
    const int z = (int)(one.z * (1.0f / TILE_Z));
    const uint key = (z * tiles_y + y) * tiles_x + x;
    atomic_inc(&tile_counts[key]);
    keys[i] = key;
    values[i] = i;
}

// Brings samples into the order of their tiles.
__kernel void reorder(__global const uint *restrict order,
                      __global const float4 *restrict sample,
                      __global const float2 *restrict signal,
                      __global float4 *restrict sorted_sample,
                      __global float2 *restrict sorted_signal)
{
    const uint i = get_global_id(0);
    const uint from = order[i];
    sorted_sample[i] = sample[from];
    sorted_signal[i] = signal[from];
}

// Work-items of a work-group that sorts, four keys each; the build options may say otherwise.
#ifndef SORT_LANES
#define SORT_LANES 256
#endif
#define PER_LANE 4
#define BLOCK (SORT_LANES * PER_LANE)
#define DIGIT_BITS 4
#define DIGITS (1 << DIGIT_BITS)

// Gives the sum over the lower lanes; `total` becomes the sum over all.
inline uint scan_lanes(const uint mine, __local uint *sums, const uint lane, uint *total)
{
    sums[lane] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint reach = 1; reach < SORT_LANES; reach *= 2) {
        const uint before = lane >= reach ? sums[lane - reach] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[lane] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    *total = sums[SORT_LANES - 1];
    return sums[lane] - mine;
}

// Sorts each block of BLOCK keys by one digit, a stable split for every bit, and counts the digits
// of the block.
__kernel __attribute__((reqd_work_group_size(SORT_LANES, 1, 1)))
void sort(__global const uint *restrict keys,
          __global const uint *restrict values,
          __global uint *restrict sorted_keys,
          __global uint *restrict sorted_values,
          __global uint *restrict digit_counts,
          const uint shift,
          const uint blocks)
{
    __local uint local_keys[BLOCK];
    __local uint local_values[BLOCK];
    __local uint sums[SORT_LANES];
    __local uint counts[DIGITS];

    const uint lane = get_local_id(0);
    const uint block = get_group_id(0);
    const uint begin = block * BLOCK;
    if (lane < DIGITS) {
        counts[lane] = 0;
    }
    for (uint i = lane; i < BLOCK; i += SORT_LANES) {
        local_keys[i] = keys[begin + i];
        local_values[i] = values[begin + i];
    }
    for (uint bit = shift; bit < shift + DIGIT_BITS; ++bit) {
        uint my_keys[PER_LANE];
        uint my_values[PER_LANE];
        uint zeros = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < PER_LANE; ++k) {
            my_keys[k] = local_keys[lane * PER_LANE + k];
            my_values[k] = local_values[lane * PER_LANE + k];
            zeros += ~(my_keys[k] >> bit) & 1;
        }
        uint all_zeros;
        uint zeros_before = scan_lanes(zeros, sums, lane, &all_zeros);
        for (uint k = 0; k < PER_LANE; ++k) {
            const uint i = lane * PER_LANE + k;
            const uint is_one = (my_keys[k] >> bit) & 1;
            const uint to = is_one ? all_zeros + i - zeros_before : zeros_before;
            zeros_before += 1 - is_one;
            local_keys[to] = my_keys[k];
            local_values[to] = my_values[k];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lane; i < BLOCK; i += SORT_LANES) {
        const uint key = local_keys[i];
        atomic_inc(&counts[(key >> shift) % DIGITS]);
        sorted_keys[begin + i] = key;
        sorted_values[begin + i] = local_values[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < DIGITS) {
        digit_counts[lane * blocks + block] = counts[lane];
    }
}

// Moves each sorted block's keys to their places among all; `starts` is the exclusive prefix sum of
// `digit_counts`.
__kernel void rearrange(__global const uint *restrict keys,
                        __global const uint *restrict values,
                        __global const uint *restrict digit_counts,
                        __global const uint *restrict starts,
                        __global uint *restrict moved_keys,
                        __global uint *restrict moved_values,
                        const uint shift,
                        const uint blocks)
{
    __local uint counts[DIGITS];
    __local uint offsets[DIGITS];

    const uint lane = get_local_id(0);
    const uint block = get_global_id(0) / BLOCK;
    const uint i = get_global_id(0) % BLOCK;
    if (lane < DIGITS) {
        counts[lane] = digit_counts[lane * blocks + block];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < DIGITS) {
        uint lower = 0;
        for (uint digit = 0; digit < lane; ++digit) {
            lower += counts[digit];
        }
        offsets[lane] = starts[lane * blocks + block] - lower;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint key = keys[block * BLOCK + i];
    const uint to = offsets[(key >> shift) % DIGITS] + i;
    moved_keys[to] = key;
    moved_values[to] = values[block * BLOCK + i];
}

// Kaiser-Bessel window of radius 2 cells and shape 5, from the power series of the modified Bessel
// function; `inside` is one minus the squared distance over the squared radius.
#define RADIUS 2.0f
#define SHAPE 5.0f
#define AT_CENTRE 27.239872f

inline float find_weight(const float inside)
{
    const float z = 0.25f * SHAPE * SHAPE * inside;
    float sum = 1.0f + z * (1.0f / 144.0f);
    sum = 1.0f + z * (1.0f / 121.0f) * sum;
    sum = 1.0f + z * (1.0f / 100.0f) * sum;
    sum = 1.0f + z * (1.0f / 81.0f) * sum;
    sum = 1.0f + z * (1.0f / 64.0f) * sum;
    sum = 1.0f + z * (1.0f / 49.0f) * sum;
    sum = 1.0f + z * (1.0f / 36.0f) * sum;
    sum = 1.0f + z * (1.0f / 25.0f) * sum;
    sum = 1.0f + z * (1.0f / 16.0f) * sum;
    sum = 1.0f + z * (1.0f / 9.0f) * sum;
    sum = 1.0f + z * (1.0f / 4.0f) * sum;
    sum = 1.0f + z * sum;
    return sum * (1.0f / AT_CENTRE);
}

// Sums the samples near each cell. A work-group owns a tile and goes through the tiles around it,
// staging their samples in local memory; tiles in the middle hold many times as many samples.
__kernel __attribute__((reqd_work_group_size(TILE_CELLS, 1, 1)))
void gridding(__global const float4 *restrict sample,
              __global const float2 *restrict signal,
              __global const uint *restrict tile_starts,
              __global float2 *restrict grid,
              __global float *restrict density,
              const int tiles_x,
              const int tiles_y,
              const int tiles_z)
{
    __local float4 near_samples[TILE_CELLS];
    __local float2 near_signals[TILE_CELLS];

    const int lane = get_local_id(0);
    const int tile_x = get_group_id(0);
    const int tile_y = get_group_id(1);
    const int tile_z = get_group_id(2);
    const int x = tile_x * TILE_X + lane % TILE_X;
    const int y = tile_y * TILE_Y + lane / TILE_X % TILE_Y;
    const int z = tile_z * TILE_Z + lane / (TILE_X * TILE_Y);
    const int first_x = max(tile_x - 1, 0);
    const int last_x = min(tile_x + 1, tiles_x - 1);

    float2 sum = (float2)(0.0f);
    float weights = 0.0f;
    for (int near_z = max(tile_z - 1, 0); near_z <= min(tile_z + 1, tiles_z - 1); ++near_z) {
        for (int near_y = max(tile_y - 1, 0); near_y <= min(tile_y + 1, tiles_y - 1); ++near_y) {
            const int row = (near_z * tiles_y + near_y) * tiles_x;
            const uint end = tile_starts[row + last_x + 1];
            for (uint begin = tile_starts[row + first_x]; begin < end; begin += TILE_CELLS) {
                const uint count = min(end - begin, (uint)TILE_CELLS);
                barrier(CLK_LOCAL_MEM_FENCE);
                if (lane < count) {
                    near_samples[lane] = sample[begin + lane];
                    near_signals[lane] = signal[begin + lane];
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                for (uint n = 0; n < count; ++n) {
                    const float4 one = near_samples[n];
                    const float dx = one.x - x;
                    const float dy = one.y - y;
                    const float dz = one.z - z;
                    const float inside =
                        1.0f - (dx * dx + dy * dy + dz * dz) * (1.0f / (RADIUS * RADIUS));
                    if (inside > 0.0f) {
                        const float weight = find_weight(inside) * one.w;
                        sum += weight * near_signals[n];
                        weights += weight;
                    }
                }
            }
        }
    }
    const int cell = (z * tiles_y * TILE_Y + y) * tiles_x * TILE_X + x;
    grid[cell] = sum;
    density[cell] = weights;
}
