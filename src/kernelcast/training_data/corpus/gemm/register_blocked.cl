// C = alpha * A * B + beta * C with A stored column by column, so that both operands of a step are
// rows. A work-group of SIDE x SIDE makes a tile of 4 SIDE x 4 SIDE: slices of both operands are
// staged in local memory, and a work-item keeps 4 x 4 sums in registers. Its rows and columns lie
// beside each other, so that it loads them as vectors.
#define TILE (4 * SIDE)

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void gemm_register_blocked(__global const float4 *restrict a, __global const float4 *restrict b,
                           __global float4 *restrict c, const int m, const int n, const int k,
                           const float alpha, const float beta)
{
    __local float4 rows[SIDE][SIDE];
    __local float4 columns[SIDE][SIDE];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int first_column = get_group_id(0) * SIDE;
    const int first_row = get_group_id(1) * SIDE;
    float4 sums[4] = {(float4)(0.0f), (float4)(0.0f), (float4)(0.0f), (float4)(0.0f)};

    for (int begin = 0; begin < k; begin += SIDE) {
        rows[y][x] = a[(size_t)(begin + y) * (m / 4) + first_row + x];
        columns[y][x] = b[(size_t)(begin + y) * (n / 4) + first_column + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll 4
        for (int i = 0; i < SIDE; ++i) {
            const float4 left = rows[i][y];
            const float4 right = columns[i][x];
            sums[0] += left.x * right;
            sums[1] += left.y * right;
            sums[2] += left.z * right;
            sums[3] += left.w * right;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    __global float4 *mine = c + (size_t)(first_row + y) * n + first_column + x;
    for (int r = 0; r < 4; ++r) {
        mine[r * (n / 4)] = alpha * sums[r] + beta * mine[r * (n / 4)];
    }
}
