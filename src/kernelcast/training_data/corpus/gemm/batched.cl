// Many products of 16 x 16 matrices, one a work-group, both operands staged in local memory.
#define SIDE 16
#define AREA (SIDE * SIDE)

__kernel void gemm_batched(__global const float *restrict a, __global const float *restrict b,
                           __global float *restrict c)
{
    __local float left[AREA];
    __local float right[AREA];
    const size_t matrix = (size_t)get_group_id(0) * AREA;
    const int lanes = get_local_size(0);
    for (int i = get_local_id(0); i < AREA; i += lanes) {
        left[i] = a[matrix + i];
        right[i] = b[matrix + i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < AREA; i += lanes) {
        const int row = i / SIDE;
        const int column = i % SIDE;
        float sum = 0.0f;
        for (int k = 0; k < SIDE; ++k) {
            sum = mad(left[row * SIDE + k], right[k * SIDE + column], sum);
        }
        c[matrix + i] = sum;
    }
}
