/* Sums of columns: a work-item adds CHUNK rows of COLUMNS columns. */
__kernel void columns(__global const float *a, __global float *part, int n)
{
#if NEAR
    const int first = get_global_id(0) * COLUMNS;
    const int step = 1;
#else
    const int first = get_group_id(0) * (LX * COLUMNS) + get_local_id(0);
    const int step = LX;
#endif
    const int top = get_global_id(1) * CHUNK;
    float sum[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        sum[c] = 0.0f;
    for (int row = 0; row < CHUNK; row++)
        for (int c = 0; c < COLUMNS; c++)
            sum[c] += a[(top + row) * n + first + c * step];
    for (int c = 0; c < COLUMNS; c++)
        part[get_global_id(1) * n + first + c * step] = sum[c];
}
