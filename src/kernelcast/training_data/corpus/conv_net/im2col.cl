// Unfolds images into the columns of a matrix whose product with the weights is a 3 x 3
// convolution: row (channel, dy, dx) holds the image shifted by (dx, dy), zeros beyond its edges.
__kernel void im2col(__global const float *restrict images, __global float *restrict columns)
{
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const size_t area = (size_t)width * height;
    const size_t plane = get_global_id(2);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    __global const float *image = images + plane * area;
    __global float *column = columns + plane * 9 * area + (size_t)y * width + x;
    for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
            const bool is_inside = x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height;
            *column = is_inside ? image[(y + dy) * width + x + dx] : 0.0f;
            column += area;
        }
    }
}
