// Inclusive prefix sums within each work-group, and the total of each work-group: the first of the
// launches that scan a long vector. The host chooses the size of the scratch in local memory.
__kernel void scan_blocks(__global const int *restrict values,
                          __global int *restrict sums,
                          __global int *restrict totals,
                          __local int *scratch,
                          const ulong count)
{
    const size_t i = get_global_id(0);
    const uint lane = get_local_id(0);
    const uint lanes = get_local_size(0);

    scratch[lane] = i < count ? values[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint reach = 1; reach < lanes; reach *= 2) {
        const int before = lane >= reach ? scratch[lane - reach] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        scratch[lane] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < count) {
        sums[i] = scratch[lane];
    }
    if (lane == lanes - 1) {
        totals[get_group_id(0)] = scratch[lane];
    }
}
