// The last step of adaptive contrast: each tile of 64 x 64 pixels has a table of new values; a
// pixel mixes what the tables of the four nearest tiles give for it.
#define TILE 64

__kernel void clahe_map(__global const uchar *restrict image, __global const uchar *restrict tables,
                        __global uchar *restrict mapped)
{
    const int width = get_global_size(0);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int tiles_x = width / TILE;
    const int tiles_y = get_global_size(1) / TILE;
    const int shifted_x = x - TILE / 2;
    const int shifted_y = y - TILE / 2;
    // arithmetic shifts and masks round down, also left of the first tile's centre
    const int weight_x = shifted_x & (TILE - 1);
    const int weight_y = shifted_y & (TILE - 1);
    const int left = max(shifted_x >> 6, 0);
    const int top = max(shifted_y >> 6, 0) * tiles_x;
    const int right = min((shifted_x >> 6) + 1, tiles_x - 1);
    const int bottom = min((shifted_y >> 6) + 1, tiles_y - 1) * tiles_x;

    const size_t place = (size_t)y * width + x;
    __global const uchar *table = tables + image[place];
    const int upper = table[(top + left) * 256] * (TILE - weight_x)
                      + table[(top + right) * 256] * weight_x;
    const int lower = table[(bottom + left) * 256] * (TILE - weight_x)
                      + table[(bottom + right) * 256] * weight_x;
    mapped[place] = (upper * (TILE - weight_y) + lower * weight_y + TILE * TILE / 2) >> 12;
}
