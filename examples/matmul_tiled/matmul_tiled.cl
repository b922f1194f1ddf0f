// C = alpha * A * B for square row-major matrices. A work-group computes TILE rows and 4 * TILE
// columns of C, four columns a work-item, and stages what it needs of A and B in local memory.
// TILE comes from the build options; pitch is the row length in vectors of four.
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void matmul(__global const float *restrict a,
            __global const float4 *restrict b,
            __global float4 *restrict c,
            const int n,
            const float alpha)
{
    __local float a_tile[TILE][TILE];
    __local float4 b_tile[TILE][TILE];

    const int pitch = n / 4;
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    const int tx = get_local_id(0);
    const int ty = get_local_id(1);

    float4 sum = (float4)(0.0f);
    for (int start = 0; start < n; start += TILE) {
        a_tile[ty][tx] = a[row * n + start + tx];
        b_tile[ty][tx] = b[(start + ty) * pitch + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; ++k) {
            sum += a_tile[ty][k] * b_tile[k][tx];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * pitch + column] = alpha * sum;
}
