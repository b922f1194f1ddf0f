// Edges of an image of packed RGBA pixels. A work-group of BLOCK_X * BLOCK_Y work-items loads its
// block with a border of one pixel into local memory; what lies outside the image is black. The
// colours' gradients are averaged; pixels at or above the threshold become white.
#define TILE_X (BLOCK_X + 2)
#define TILE_Y (BLOCK_Y + 2)

inline float find_gradient(const int4 above, const int4 level, const int4 below)
{
    // Each holds the left, the middle and the right pixel's value in x, y and z.
    const int across = above.z + 2 * level.z + below.z - above.x - 2 * level.x - below.x;
    const int down = below.x + 2 * below.y + below.z - above.x - 2 * above.y - above.z;
    return sqrt((float)(across * across + down * down));
}

__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1)))
void sobel(__global const uchar4 *restrict source,
           __global uchar4 *restrict target,
           const int width,
           const int height,
           const float threshold)
{
    __local uchar4 tile[TILE_Y][TILE_X];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int left = (int)get_group_id(0) * BLOCK_X - 1;
    const int top = (int)get_group_id(1) * BLOCK_Y - 1;
    for (int y = ly; y < TILE_Y; y += BLOCK_Y) {
        for (int x = lx; x < TILE_X; x += BLOCK_X) {
            const int from_x = left + x;
            const int from_y = top + y;
            const bool is_inside = from_x >= 0 && from_x < width && from_y >= 0 && from_y < height;
            tile[y][x] = is_inside ? source[from_y * width + from_x] : (uchar4)(0);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    float sum = 0.0f;
#define ADD_CHANNEL(c)                                                                            \
    sum += find_gradient(                                                                         \
        (int4)(tile[ly][lx].c, tile[ly][lx + 1].c, tile[ly][lx + 2].c, 0),                        \
        (int4)(tile[ly + 1][lx].c, 0, tile[ly + 1][lx + 2].c, 0),                                 \
        (int4)(tile[ly + 2][lx].c, tile[ly + 2][lx + 1].c, tile[ly + 2][lx + 2].c, 0))
    ADD_CHANNEL(x);
    ADD_CHANNEL(y);
    ADD_CHANNEL(z);
    const uchar edge = sum * (1.0f / 3.0f) >= threshold ? 255 : 0;
    target[get_global_id(1) * width + get_global_id(0)] = (uchar4)(edge, edge, edge, 255);
}
