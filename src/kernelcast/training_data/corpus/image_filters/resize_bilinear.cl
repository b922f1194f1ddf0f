// Makes an image one and a half times as large. Places in the source have 16 bits behind the point,
// of which the weights keep 11, so that the result is the same on every device.
__kernel void resize_bilinear(__global const uchar4 *restrict source,
                              __global uchar4 *restrict enlarged,
                              const int source_width, const int source_height, const int step)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int from_x = max(x * step + step / 2 - 32768, 0);
    const int from_y = max(y * step + step / 2 - 32768, 0);
    const int left = from_x >> 16;
    const int top = from_y >> 16;
    const int right = min(left + 1, source_width - 1);
    const int bottom = min(top + 1, source_height - 1);
    const int weight_x = (from_x & 65535) >> 5;
    const int weight_y = (from_y & 65535) >> 5;
    __global const uchar4 *upper = source + (size_t)top * source_width;
    __global const uchar4 *lower = source + (size_t)bottom * source_width;
    const int4 above = convert_int4(upper[left]) * (2048 - weight_x)
                       + convert_int4(upper[right]) * weight_x;
    const int4 below = convert_int4(lower[left]) * (2048 - weight_x)
                       + convert_int4(lower[right]) * weight_x;
    // 8 bits a colour and twice 11 of weights fit into 31
    const int4 mixed = above * (2048 - weight_y) + below * weight_y;
    enlarged[(size_t)y * get_global_size(0) + x] = convert_uchar4((mixed + (1 << 21)) >> 22);
}
