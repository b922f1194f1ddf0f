// Transpose through a local-memory tile. Rows of the tile are one element longer than the tile is
// wide, so that reading a column touches every bank of local memory once.
__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void transpose(__global const float *restrict matrix,
               __global float *restrict transposed,
               const int width,
               const int height)
{
    __local float tile[TILE][TILE + 1];

    const int tx = get_local_id(0);
    const int ty = get_local_id(1);
    const int left = get_group_id(0) * TILE;
    const int top = get_group_id(1) * TILE;

    if (left + tx < width && top + ty < height) {
        tile[ty][tx] = matrix[(top + ty) * width + left + tx];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (left + ty < width && top + tx < height) {
        transposed[(left + ty) * height + top + tx] = tile[tx][ty];
    }
}
