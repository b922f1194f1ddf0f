// Erosion of a grey image by a disc: the least value less than three and a half pixels away. Beyond
// the edges the last pixel is repeated.
#define RADIUS 3
#define WIDE (TILE_X + 2 * RADIUS)
#define HIGH (TILE_Y + 2 * RADIUS)

__kernel __attribute__((reqd_work_group_size(TILE_X, TILE_Y, 1)))
void erosion(__global const uchar *restrict image, __global uchar *restrict eroded,
             const int width, const int height)
{
    __local uchar tile[HIGH][WIDE];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int left = get_group_id(0) * TILE_X - RADIUS;
    const int top = get_group_id(1) * TILE_Y - RADIUS;
    for (int row = ly; row < HIGH; row += TILE_Y) {
        const size_t begin = (size_t)clamp(top + row, 0, height - 1) * width;
        for (int column = lx; column < WIDE; column += TILE_X) {
            tile[row][column] = image[begin + clamp(left + column, 0, width - 1)];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // half the width of the disc in each of its rows
    const int reach[2 * RADIUS + 1] = {1, 2, 3, 3, 3, 2, 1};
    uchar least = 255;
    for (int dy = 0; dy <= 2 * RADIUS; ++dy) {
        for (int dx = -reach[dy]; dx <= reach[dy]; ++dx) {
            least = min(least, tile[ly + dy][lx + RADIUS + dx]);
        }
    }
    eroded[(size_t)get_global_id(1) * width + get_global_id(0)] = least;
}
