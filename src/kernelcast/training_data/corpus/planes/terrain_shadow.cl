// Light and shadow on a terrain: a ray goes from each place towards the sun, in 256ths of a cell a step,
// until it meets the ground, leaves the map or is higher than every mountain. Lit places tell how steep
// the sun meets them.
__kernel void terrain_shadow(__global const int *restrict heights, __global uchar *restrict light,
                             const int step_x, const int step_y, const int rise, const int peak)
{
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const size_t place = (size_t)y * width + x;
    const int start = heights[place];
    const int slope = heights[(size_t)y * width + max(x - 1, 0)] - start;
    int ray = start;
    int at_x = x << 8;
    int at_y = y << 8;
    int lit = clamp(128 + slope, 1, 255);
    while (true) {
        ray += rise;
        at_x += step_x;
        at_y += step_y;
        const int cell_x = at_x >> 8;
        const int cell_y = at_y >> 8;
        if (ray > peak || cell_x >= width || cell_y >= height) {
            break;
        }
        if (heights[(size_t)cell_y * width + cell_x] > ray) {
            lit = 0;
            break;
        }
    }
    light[place] = lit;
}
