/* Transposes a matrix, TILE * TILE elements per work-group; PAD avoids that the columns of a tile
 * share sets of a cache or banks. */
__kernel __attribute__((reqd_work_group_size(TILE, ROWS, 1)))
void transpose(__global const float *in, __global float *out, int width, int height)
{
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int left = get_group_id(0) * TILE, top = get_group_id(1) * TILE;
#if STAGED
    __local float tile[TILE][TILE + PAD];
    for (int r = ly; r < TILE; r += ROWS)
        tile[r][lx] = in[(top + r) * width + left + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = ly; r < TILE; r += ROWS)
        out[(left + r) * height + top + lx] = tile[lx][r];
#else
    for (int r = ly; r < TILE; r += ROWS)
#if READS_ROWS
        out[(left + lx) * height + top + r] = in[(top + r) * width + left + lx];
#else
        out[(left + r) * height + top + lx] = in[(top + lx) * width + left + r];
#endif
#endif
}
