/* Five-point stencil on a padded grid; ROWS rows per work-item, tiles may pass through local memory. */
__kernel void jacobi(__global const float *in, __global float *out, int pitch)
{
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int x = get_group_id(0) * LX + lx + 1;
    const int top = get_group_id(1) * (LY * ROWS) + 1;
#if STAGED
    __local float tile[LY * ROWS + 2][LX + 2];
    const int corner = (top - 1) * pitch + x - lx - 1;
    for (int row = ly; row < LY * ROWS + 2; row += LY)
        for (int column = lx; column < LX + 2; column += LX)
            tile[row][column] = in[corner + row * pitch + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = 0; r < ROWS; r++) {
        const int row = ly + r * LY;
        out[(top + row) * pitch + x] = 0.2f * (tile[row + 1][lx + 1] + tile[row + 1][lx]
            + tile[row + 1][lx + 2] + tile[row][lx + 1] + tile[row + 2][lx + 1]);
    }
#else
    for (int r = 0; r < ROWS; r++) {
        const int at = (top + ly + r * LY) * pitch + x;
        out[at] = 0.2f * (in[at] + in[at - 1] + in[at + 1] + in[at - pitch] + in[at + pitch]);
    }
#endif
}
