// A damping step of a bent plate: the biharmonic operator has thirteen points, up to two cells away.
// A work-group stages its tile and the cells around it; beyond the edges the last cell is repeated.
#define WIDE (TILE_X + 4)
#define HIGH (TILE_Y + 4)

__kernel __attribute__((reqd_work_group_size(TILE_X, TILE_Y, 1)))
void plate(__global const float *restrict bend, __global float *restrict next, const int width,
           const int height, const float rate)
{
    __local float tile[HIGH][WIDE];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int left = get_group_id(0) * TILE_X - 2;
    const int top = get_group_id(1) * TILE_Y - 2;
    for (int row = ly; row < HIGH; row += TILE_Y) {
        const size_t begin = (size_t)clamp(top + row, 0, height - 1) * width;
        for (int column = lx; column < WIDE; column += TILE_X) {
            tile[row][column] = bend[begin + clamp(left + column, 0, width - 1)];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const int x = lx + 2;
    const int y = ly + 2;
    float sum = 20.0f * tile[y][x];
    sum -= 8.0f * (tile[y][x - 1] + tile[y][x + 1] + tile[y - 1][x] + tile[y + 1][x]);
    sum += 2.0f * (tile[y - 1][x - 1] + tile[y - 1][x + 1] + tile[y + 1][x - 1]
                   + tile[y + 1][x + 1]);
    sum += tile[y][x - 2] + tile[y][x + 2] + tile[y - 2][x] + tile[y + 2][x];
    next[(size_t)get_global_id(1) * width + get_global_id(0)] = tile[y][x] - rate * sum;
}
