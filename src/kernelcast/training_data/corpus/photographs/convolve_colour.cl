// A convolution of a colour image with any 7 x 7 weights, in 256ths. Edges repeat the last pixel.
#define RADIUS 3

__kernel void convolve_colour(__global const uchar4 *restrict image,
                              __global uchar4 *restrict filtered, __constant int *weights,
                              const int width, const int height)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    int4 sum = (int4)(128);
    for (int dy = -RADIUS; dy <= RADIUS; ++dy) {
        __global const uchar4 *row = image + (size_t)clamp(y + dy, 0, height - 1) * width;
        for (int dx = -RADIUS; dx <= RADIUS; ++dx) {
            const int weight = weights[(dy + RADIUS) * (2 * RADIUS + 1) + dx + RADIUS];
            sum += convert_int4(row[clamp(x + dx, 0, width - 1)]) * weight;
        }
    }
    filtered[(size_t)y * width + x] = convert_uchar4_sat(sum >> 8);
}
