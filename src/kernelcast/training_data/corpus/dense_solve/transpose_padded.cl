// The transpose of a row-major matrix: a work-group reads a tile of 32 x 32 by rows and writes it
// by rows. The tile in local memory has a column more, so that reading it by columns meets all
// banks.
#define TILE 32

__kernel void transpose_padded(__global const float *restrict matrix,
                               __global float *restrict transposed,
                               const int rows, const int columns)
{
    __local float tile[TILE][TILE + 1];
    const int x = get_local_id(0);
    const int tile_column = get_group_id(0) * TILE;
    const int tile_row = get_group_id(1) * TILE;
    for (int y = get_local_id(1); y < TILE; y += get_local_size(1)) {
        tile[y][x] = matrix[(size_t)(tile_row + y) * columns + tile_column + x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int y = get_local_id(1); y < TILE; y += get_local_size(1)) {
        transposed[(size_t)(tile_column + y) * rows + tile_row + x] = tile[x][y];
    }
}
