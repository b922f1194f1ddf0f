// The next level of an image pyramid: 5 x 5 binomial weights around every other pixel of every other
// row. Edges repeat the last pixel.
__kernel void pyramid_down(__global const uchar *restrict image, __global uchar *restrict smaller)
{
    const int width = 2 * get_global_size(0);
    const int height = 2 * get_global_size(1);
    const int x = 2 * get_global_id(0);
    const int y = 2 * get_global_id(1);
    const int weights[5] = {1, 4, 6, 4, 1};
    int sum = 128;
    for (int dy = 0; dy < 5; ++dy) {
        __global const uchar *row = image + (size_t)clamp(y + dy - 2, 0, height - 1) * width;
        int along = 0;
        for (int dx = 0; dx < 5; ++dx) {
            along += weights[dx] * row[clamp(x + dx - 2, 0, width - 1)];
        }
        sum += weights[dy] * along;
    }
    smaller[get_global_id(1) * get_global_size(0) + get_global_id(0)] = sum >> 8;
}
