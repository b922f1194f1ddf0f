// The median of each colour among a pixel and its eight neighbours. The work-group's pixels with
// their halo are staged in local memory; the median is found bit by bit, the highest first, by
// counting the neighbours below a candidate. Pixels outside the image are black.
#define TILE_WIDTH (BLOCK_X + 2)
#define TILE_HEIGHT (BLOCK_Y + 2)

inline uchar4 read_pixel(__global const uchar4 *source, const int x, const int y, const int width,
                         const int height)
{
    const bool is_inside = x >= 0 && y >= 0 && x < width && y < height;
    return is_inside ? source[y * width + x] : (uchar4)(0);
}

__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1)))
void median(__global const uchar4 *restrict source,
            __global uchar4 *restrict target,
            const int width,
            const int height)
{
    __local uchar4 tile[TILE_HEIGHT][TILE_WIDTH];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int left = (int)get_group_id(0) * BLOCK_X - 1;
    const int top = (int)get_group_id(1) * BLOCK_Y - 1;

    for (int y = ly; y < TILE_HEIGHT; y += BLOCK_Y) {
        for (int x = lx; x < TILE_WIDTH; x += BLOCK_X) {
            tile[y][x] = read_pixel(source, left + x, top + y, width, height);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= width || y >= height) {
        return;
    }
    int4 median = (int4)(0);
    for (int bit = 128; bit > 0; bit >>= 1) {
        const int4 candidate = median | bit;
        int4 below = (int4)(0);
        for (int row = 0; row < 3; ++row) {
            for (int column = 0; column < 3; ++column) {
                // a true comparison of vectors is -1
                below -= convert_int4(tile[ly + row][lx + column]) < candidate;
            }
        }
        median = below <= 4 ? candidate : median;
    }
    target[y * width + x] = convert_uchar4(median);
}
