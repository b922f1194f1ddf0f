// Colours as video has them: brightness for every pixel, two differences of colour for every square of
// four.
inline uchar find_brightness(const int4 colour)
{
    return ((66 * colour.x + 129 * colour.y + 25 * colour.z + 128) >> 8) + 16;
}

__kernel void yuv420(__global const uchar4 *restrict image, __global uchar *restrict brightness,
                     __global uchar *restrict blue, __global uchar *restrict red)
{
    const size_t half_width = get_global_size(0);
    const size_t width = 2 * half_width;
    const size_t upper = 2 * get_global_id(1) * width + 2 * get_global_id(0);
    const size_t lower = upper + width;
    const int4 a = convert_int4(image[upper]);
    const int4 b = convert_int4(image[upper + 1]);
    const int4 c = convert_int4(image[lower]);
    const int4 d = convert_int4(image[lower + 1]);
    brightness[upper] = find_brightness(a);
    brightness[upper + 1] = find_brightness(b);
    brightness[lower] = find_brightness(c);
    brightness[lower + 1] = find_brightness(d);
    const int4 mean = (a + b + c + d + 2) >> 2;
    const size_t square = get_global_id(1) * half_width + get_global_id(0);
    blue[square] = ((-38 * mean.x - 74 * mean.y + 112 * mean.z + 128) >> 8) + 128;
    red[square] = ((112 * mean.x - 94 * mean.y - 18 * mean.z + 128) >> 8) + 128;
}
