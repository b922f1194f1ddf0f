// A (2 RADIUS + 1) x (2 RADIUS + 1) filter over a grey image of bytes; the filter lies in constant
// memory, and places outside the image repeat its edge.
#define WIDTH_OF_FILTER (2 * RADIUS + 1)

__kernel void convolve(__global const uchar *restrict image,
                       __constant float *filter,
                       __global float *restrict result,
                       const int width,
                       const int height)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= width || y >= height) {
        return;
    }
    float sum = 0.0f;
    for (int dy = -RADIUS; dy <= RADIUS; ++dy) {
        const int row = clamp(y + dy, 0, height - 1) * width;
        for (int dx = -RADIUS; dx <= RADIUS; ++dx) {
            const int column = clamp(x + dx, 0, width - 1);
            const float weight = filter[(dy + RADIUS) * WIDTH_OF_FILTER + dx + RADIUS];
            sum += weight * image[row + column];
        }
    }
    result[y * width + x] = sum;
}
