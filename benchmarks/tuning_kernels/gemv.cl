/* y = A x with A in row-major order; a work-item makes ROWS rows, x may pass through local memory. */
__kernel __attribute__((reqd_work_group_size(LX, 1, 1)))
void gemv(__global const float *a, __global const float *x, __global float *y, int n)
{
    const int first = get_group_id(0) * (LX * ROWS) + get_local_id(0);
    float sum[ROWS];
    for (int r = 0; r < ROWS; r++)
        sum[r] = 0.0f;
#if TILE
    __local float part[TILE];
    for (int start = 0; start < n; start += TILE) {
        for (int k = get_local_id(0); k < TILE; k += LX)
            part[k] = x[start + k];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            for (int r = 0; r < ROWS; r++)
                sum[r] += a[(first + r * LX) * n + start + k] * part[k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    for (int k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r++)
            sum[r] += a[(first + r * LX) * n + k] * x[k];
#endif
    for (int r = 0; r < ROWS; r++)
        y[first + r * LX] = sum[r];
}
