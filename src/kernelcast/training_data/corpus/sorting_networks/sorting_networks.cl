// Bitonic sorting of arrays of keys with values; lengths are powers of two. What fits into local
// memory is sorted there (sort_local, or sort_local1 for parts of longer arrays); longer arrays are
// merged by steps in global memory (merge_global) while the partners are far apart, and by all the
// steps that are left in local memory (merge_local).

// Work-items of a work-group that works in local memory, where it holds two pairs a work-item; the
// build options may say otherwise.
#ifndef LANES
#define LANES 256
#endif
#define HELD (2 * LANES)

// Puts two pairs into the order asked for.
inline void compare(__local uint *keys, __local uint *values, const uint a, const uint b,
                    const bool is_upwards)
{
    const uint key_a = keys[a];
    const uint key_b = keys[b];
    if ((key_a > key_b) == is_upwards) {
        const uint value_a = values[a];
        keys[a] = key_b;
        keys[b] = key_a;
        values[a] = values[b];
        values[b] = value_a;
    }
}

// Merges bitonic sequences of `size` pairs; all work-items call it.
inline void merge_held(__local uint *keys, __local uint *values, const uint lane, const uint size,
                       const bool is_upwards)
{
    for (uint stride = size / 2; stride > 0; stride /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint first = 2 * lane - lane % stride;
        compare(keys, values, first, first + stride, is_upwards);
    }
}

inline void load_pairs(__local uint *keys, __local uint *values, const uint lane,
                       __global const uint *from_keys, __global const uint *from_values)
{
    const uint begin = get_group_id(0) * HELD + lane;
    keys[lane] = from_keys[begin];
    values[lane] = from_values[begin];
    keys[lane + LANES] = from_keys[begin + LANES];
    values[lane + LANES] = from_values[begin + LANES];
}

inline void store_pairs(__local const uint *keys, __local const uint *values, const uint lane,
                        __global uint *to_keys, __global uint *to_values)
{
    const uint begin = get_group_id(0) * HELD + lane;
    barrier(CLK_LOCAL_MEM_FENCE);
    to_keys[begin] = keys[lane];
    to_values[begin] = values[lane];
    to_keys[begin + LANES] = keys[lane + LANES];
    to_values[begin + LANES] = values[lane + LANES];
}

// Sorts arrays of `length` pairs, at most HELD, upwards.
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void sort_local(__global uint *restrict to_keys, __global uint *restrict to_values,
                __global const uint *restrict from_keys, __global const uint *restrict from_values,
                const uint length)
{
    __local uint keys[HELD];
    __local uint values[HELD];
    const uint lane = get_local_id(0);
    load_pairs(keys, values, lane, from_keys, from_values);
    for (uint size = 2; size < length; size *= 2) {
        merge_held(keys, values, lane, size, (lane & (size / 2)) == 0);
    }
    merge_held(keys, values, lane, length, true);
    store_pairs(keys, values, lane, to_keys, to_values);
}

// Sorts parts of HELD pairs, in turn upwards and downwards: two of them make a bitonic sequence.
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void sort_local1(__global uint *restrict to_keys, __global uint *restrict to_values,
                 __global const uint *restrict from_keys, __global const uint *restrict from_values)
{
    __local uint keys[HELD];
    __local uint values[HELD];
    const uint lane = get_local_id(0);
    load_pairs(keys, values, lane, from_keys, from_values);
    for (uint size = 2; size < HELD; size *= 2) {
        merge_held(keys, values, lane, size, (lane & (size / 2)) == 0);
    }
    merge_held(keys, values, lane, HELD, get_group_id(0) % 2 == 0);
    store_pairs(keys, values, lane, to_keys, to_values);
}

// The step of a merge of `size` pairs in arrays of `length` whose partners are `stride` apart. The
// whole array is merged upwards, parts of it in turn upwards and downwards.
__kernel void merge_global(__global uint *restrict to_keys, __global uint *restrict to_values,
                           __global const uint *restrict from_keys,
                           __global const uint *restrict from_values,
                           const uint length, const uint size, const uint stride)
{
    const uint comparator = get_global_id(0);
    const bool is_upwards = (comparator & (length / 2 - 1) & (size / 2)) == 0;
    const uint a = 2 * comparator - (comparator & (stride - 1));
    const uint b = a + stride;
    const uint key_a = from_keys[a];
    const uint key_b = from_keys[b];
    const uint value_a = from_values[a];
    const uint value_b = from_values[b];
    const bool is_swap = (key_a > key_b) == is_upwards;
    to_keys[a] = is_swap ? key_b : key_a;
    to_values[a] = is_swap ? value_b : value_a;
    to_keys[b] = is_swap ? key_a : key_b;
    to_values[b] = is_swap ? value_a : value_b;
}

// The steps of the same merge whose partners lie within HELD pairs.
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void merge_local(__global uint *restrict to_keys, __global uint *restrict to_values,
                 __global const uint *restrict from_keys, __global const uint *restrict from_values,
                 const uint length, const uint size)
{
    __local uint keys[HELD];
    __local uint values[HELD];
    const uint lane = get_local_id(0);
    const uint comparator = get_global_id(0) & (length / 2 - 1);
    load_pairs(keys, values, lane, from_keys, from_values);
    merge_held(keys, values, lane, HELD, (comparator & (size / 2)) == 0);
    store_pairs(keys, values, lane, to_keys, to_values);
}
