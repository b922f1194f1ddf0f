// y = A * x for a row-major matrix in six ways. The first two give a row to a work-item, whose
// neighbours then load from distant addresses; the others give a row to a work-group, whose
// work-items load neighbouring values and add up what they have in local memory.

// A work-item per row.
__kernel void uncoal0(__global const float *restrict matrix, __global const float *restrict x,
                      __global float *restrict y, const uint width, const uint height)
{
    const uint row = get_global_id(0);
    if (row < height) {
        __global const float *values = matrix + (size_t)row * width;
        float sum = 0.0f;
        for (uint k = 0; k < width; ++k) {
            sum += values[k] * x[k];
        }
        y[row] = sum;
    }
}

// A work-item per row, then the row that lies a launch further on.
__kernel void uncoal1(__global const float *restrict matrix, __global const float *restrict x,
                      __global float *restrict y, const uint width, const uint height)
{
    for (uint row = get_global_id(0); row < height; row += get_global_size(0)) {
        __global const float *values = matrix + (size_t)row * width;
        float sum = 0.0f;
        for (uint k = 0; k < width; ++k) {
            sum += values[k] * x[k];
        }
        y[row] = sum;
    }
}

inline float take_share(__global const float *values, __global const float *x, const uint width)
{
    float sum = 0.0f;
    for (uint k = get_local_id(0); k < width; k += get_local_size(0)) {
        sum += values[k] * x[k];
    }
    return sum;
}

// The first work-item adds up the others' shares.
__kernel void coal0(__global const float *restrict matrix, __global const float *restrict x,
                    __global float *restrict y, const uint width, const uint height,
                    __local float *shares)
{
    for (uint row = get_group_id(0); row < height; row += get_num_groups(0)) {
        shares[get_local_id(0)] = take_share(matrix + (size_t)row * width, x, width);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) == 0) {
            float sum = 0.0f;
            for (uint k = 0; k < get_local_size(0); ++k) {
                sum += shares[k];
            }
            y[row] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// A tree with growing strides: shares that are added lie further and further apart.
__kernel void coal1(__global const float *restrict matrix, __global const float *restrict x,
                    __global float *restrict y, const uint width, const uint height,
                    __local float *shares)
{
    for (uint row = get_group_id(0); row < height; row += get_num_groups(0)) {
        shares[get_local_id(0)] = take_share(matrix + (size_t)row * width, x, width);
        for (uint stride = 1; stride < get_local_size(0); stride *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            const uint index = 2 * stride * get_local_id(0);
            if (index < get_local_size(0)) {
                shares[index] += shares[index + stride];
            }
        }
        if (get_local_id(0) == 0) {
            y[row] = shares[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// A tree with shrinking strides: neighbours add neighbours.
__kernel void coal2(__global const float *restrict matrix, __global const float *restrict x,
                    __global float *restrict y, const uint width, const uint height,
                    __local float *shares)
{
    for (uint row = get_group_id(0); row < height; row += get_num_groups(0)) {
        shares[get_local_id(0)] = take_share(matrix + (size_t)row * width, x, width);
        for (uint stride = get_local_size(0) / 2; stride > 0; stride /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (get_local_id(0) < stride) {
                shares[get_local_id(0)] += shares[get_local_id(0) + stride];
            }
        }
        if (get_local_id(0) == 0) {
            y[row] = shares[0];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Two stages: the first WARP work-items add up what lies a multiple of WARP apart, the first one
// adds up theirs. Few barriers whatever the local size.
#define WARP 32

__kernel void coal3(__global const float *restrict matrix, __global const float *restrict x,
                    __global float *restrict y, const uint width, const uint height,
                    __local float *shares)
{
    const uint lane = get_local_id(0);
    for (uint row = get_group_id(0); row < height; row += get_num_groups(0)) {
        shares[lane] = take_share(matrix + (size_t)row * width, x, width);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < WARP) {
            float sum = shares[lane];
            for (uint k = lane + WARP; k < get_local_size(0); k += WARP) {
                sum += shares[k];
            }
            shares[lane] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane == 0) {
            float sum = 0.0f;
            for (uint k = 0; k < WARP; ++k) {
                sum += shares[k];
            }
            y[row] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
