// A pass of jump flooding, which finds the nearest seed of every place: it takes the nearest of those
// known to itself and to eight places a step away. A seed is the number of its place; below 0 is none.
__kernel void jump_flood(__global const int *restrict seeds, __global int *restrict nearest,
                         const int step)
{
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    int best = -1;
    int least = INT_MAX;
    for (int dy = -1; dy <= 1; ++dy) {
        const int from_y = y + dy * step;
        if (from_y < 0 || from_y >= height) {
            continue;
        }
        for (int dx = -1; dx <= 1; ++dx) {
            const int from_x = x + dx * step;
            if (from_x < 0 || from_x >= width) {
                continue;
            }
            const int seed = seeds[(size_t)from_y * width + from_x];
            if (seed >= 0) {
                const int off_x = seed % width - x;
                const int off_y = seed / width - y;
                const int distance = off_x * off_x + off_y * off_y;
                if (distance < least) {
                    least = distance;
                    best = seed;
                }
            }
        }
    }
    nearest[(size_t)y * width + x] = best;
}
