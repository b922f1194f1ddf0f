// Sum of squares. Every work-group takes an equal, contiguous share of the input, adds it up in a
// local-memory tree, tile by tile, and writes one partial result.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void sum_of_squares(__global const float *restrict values,
                    __global float *restrict partial,
                    const uint count)
{
    __local float tree[GROUP];

    const uint lane = get_local_id(0);
    const uint groups = get_num_groups(0);
    const uint share = (count + groups - 1) / groups;
    const uint begin = get_group_id(0) * share;
    const uint end = min(begin + share, count);

    float total = 0.0f;
    for (uint tile = begin; tile < end; tile += GROUP) {
        const uint i = tile + lane;
        const float value = i < end ? values[i] : 0.0f;
        tree[lane] = value * value;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint half_width = GROUP / 2; half_width > 0; half_width /= 2) {
            if (lane < half_width) {
                tree[lane] += tree[lane + half_width];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        total += tree[0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0) {
        partial[get_group_id(0)] = total;
    }
}
