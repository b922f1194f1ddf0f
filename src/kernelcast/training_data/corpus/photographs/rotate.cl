// Rotates and scales an image about its middle: a pixel comes from a place between four others, those
// outside the image are black.
inline float load_or_black(__global const float *image, const int x, const int y, const int width,
                           const int height)
{
    const bool is_inside = x >= 0 && x < width && y >= 0 && y < height;
    return is_inside ? image[(size_t)y * width + x] : 0.0f;
}

__kernel void rotate_image(__global const float *restrict image, __global float *restrict rotated,
                           const float cosine, const float sine)
{
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const float off_x = x - 0.5f * (width - 1);
    const float off_y = y - 0.5f * (height - 1);
    const float from_x = cosine * off_x - sine * off_y + 0.5f * (width - 1);
    const float from_y = sine * off_x + cosine * off_y + 0.5f * (height - 1);
    const int left = (int)floor(from_x);
    const int top = (int)floor(from_y);
    const float weight_x = from_x - left;
    const float weight_y = from_y - top;
    const float above = mix(load_or_black(image, left, top, width, height),
                            load_or_black(image, left + 1, top, width, height), weight_x);
    const float below = mix(load_or_black(image, left, top + 1, width, height),
                            load_or_black(image, left + 1, top + 1, width, height), weight_x);
    rotated[(size_t)y * width + x] = mix(above, below, weight_y);
}
