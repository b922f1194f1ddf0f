// C = A * B, row-major. A work-group makes a tile of TILE * TILE results; both factors' tiles go
// through local memory that the host sizes.
__kernel void matmul(__global float *restrict c,
                     __global const float *restrict a,
                     __global const float *restrict b,
                     __local float *a_tile,
                     __local float *b_tile,
                     const int inner,
                     const int columns)
{
    const int tx = get_local_id(0);
    const int ty = get_local_id(1);
    const int column = get_global_id(0);
    const int row = get_global_id(1);

    float sum = 0.0f;
    for (int start = 0; start < inner; start += TILE) {
        a_tile[ty * TILE + tx] = a[row * inner + start + tx];
        b_tile[ty * TILE + tx] = b[(start + ty) * columns + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; ++k) {
            sum += a_tile[ty * TILE + k] * b_tile[k * TILE + tx];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * columns + column] = sum;
}
