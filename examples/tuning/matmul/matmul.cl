/* C = A B, square matrices in row-major order.
 * A work-group makes a tile of LY * ROWS rows and LX * COLUMNS columns, TILE_K steps of k at a time;
 * with STAGED, tiles of A and B pass through local memory. */
__kernel __attribute__((reqd_work_group_size(LX, LY, 1)))
void matmul(__global const float *a, __global const float *b, __global float *c, int n)
{
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int left = get_group_id(0) * (LX * COLUMNS), top = get_group_id(1) * (LY * ROWS);
    float sum[ROWS][COLUMNS];
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < COLUMNS; s++)
            sum[r][s] = 0.0f;
#if STAGED
    __local float part_a[LY * ROWS][TILE_K], part_b[TILE_K][LX * COLUMNS];
    for (int start = 0; start < n; start += TILE_K) {
        for (int r = ly; r < LY * ROWS; r += LY)
            for (int k = lx; k < TILE_K; k += LX)
                part_a[r][k] = a[(top + r) * n + start + k];
        for (int k = ly; k < TILE_K; k += LY)
            for (int s = 0; s < COLUMNS; s++)
                part_b[k][s * LX + lx] = b[(start + k) * n + left + s * LX + lx];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE_K; k++)
            for (int r = 0; r < ROWS; r++)
                for (int s = 0; s < COLUMNS; s++)
                    sum[r][s] += part_a[r * LY + ly][k] * part_b[k][s * LX + lx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    for (int k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r++)
            for (int s = 0; s < COLUMNS; s++)
                sum[r][s] += a[(top + r * LY + ly) * n + k] * b[k * n + left + s * LX + lx];
#endif
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < COLUMNS; s++)
            c[(top + r * LY + ly) * n + left + s * LX + lx] = sum[r][s];
}
