// A level of the Haar transform of an image in whole numbers: every 2 x 2 pixels become their mean and
// three differences, each of which goes into its own quarter of the result.
__kernel void haar(__global const short2 *restrict image, __global short *restrict quarters)
{
    const size_t half_width = get_global_size(0);
    const size_t half_height = get_global_size(1);
    const size_t x = get_global_id(0);
    const size_t y = get_global_id(1);
    const int2 upper = convert_int2(image[2 * y * half_width + x]);
    const int2 lower = convert_int2(image[(2 * y + 1) * half_width + x]);
    const int2 mean = (upper + lower) >> 1;
    const int2 difference = upper - lower;
    const size_t width = 2 * half_width;
    __global short *top = quarters + y * width + x;
    __global short *bottom = top + half_height * width;
    top[0] = (mean.x + mean.y) >> 1;
    top[half_width] = mean.x - mean.y;
    bottom[0] = (difference.x + difference.y) >> 1;
    bottom[half_width] = difference.x - difference.y;
}
