// Reductions: sums of floating-point numbers for each work-group, least and greatest of all
// integers.

// A number a work-item. Work-items whose number is a multiple of a growing stride add what lies a
// stride ahead.
__kernel void sum_divergent(__global const float *restrict in, __global float *restrict sums,
                            __local float *shares)
{
    const uint lane = get_local_id(0);
    const uint lanes = get_local_size(0);
    shares[lane] = in[get_global_id(0)];
    for (uint stride = 1; stride < lanes; stride *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane % (2 * stride) == 0) {
            shares[lane] += shares[lane + stride];
        }
    }
    if (lane == 0) {
        sums[get_group_id(0)] = shares[0];
    }
}

#define VECTORS 16

// VECTORS vectors a work-item, a work-group's size apart; the first half of the work-items adds
// what the second one holds, and so on.
__kernel void sum_vectors(__global const float4 *restrict in, __global float *restrict sums,
                          __local float *shares)
{
    const uint lane = get_local_id(0);
    const uint lanes = get_local_size(0);
    const size_t begin = get_group_id(0) * (size_t)(VECTORS * lanes) + lane;
    float4 sum = (float4)(0.0f);
    for (uint k = 0; k < VECTORS; ++k) {
        sum += in[begin + k * lanes];
    }
    shares[lane] = sum.x + sum.y + sum.z + sum.w;
    for (uint reach = lanes / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) {
            shares[lane] += shares[lane + reach];
        }
    }
    if (lane == 0) {
        sums[get_group_id(0)] = shares[0];
    }
}

// PER_LANE numbers a work-item. All work-items of a work-group contend for two local cells, all
// work-groups for two global ones.
#define PER_LANE 8

__kernel void extremes_atomic(__global const int *restrict in, __global int *restrict least,
                              __global int *restrict greatest)
{
    __local int held[2];
    const uint lane = get_local_id(0);
    const uint lanes = get_local_size(0);
    const size_t begin = get_group_id(0) * (size_t)(PER_LANE * lanes) + lane;
    if (lane == 0) {
        held[0] = INT_MAX;
        held[1] = INT_MIN;
    }
    int low = INT_MAX;
    int high = INT_MIN;
    for (uint k = 0; k < PER_LANE; ++k) {
        const int value = in[begin + k * lanes];
        low = min(low, value);
        high = max(high, value);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_min(&held[0], low);
    atomic_max(&held[1], high);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
        atomic_min(least, held[0]);
        atomic_max(greatest, held[1]);
    }
}
