/* Mean and deviation over windows of 2 r + 1 rows: a column per work-item, sums run along. */
__kernel void box_running(__global const float *src, __global float2 *dst, const int width,
                          const int height, const int r)
{
    const size_t x = get_global_id(0);
    if (x >= (size_t)width)
        return;
    float sum = 0.0f, squares = 0.0f;
    for (int y = 0; y < r; ++y) {
        const float v = src[(size_t)y * width + x];
        sum += v;
        squares += v * v;
    }
    for (int y = 0; y < height; ++y) {
        if (y + r < height) {
            const float in = src[(size_t)(y + r) * width + x];
            sum += in;
            squares += in * in;
        }
        if (y > r) {
            const float out = src[(size_t)(y - r - 1) * width + x];
            sum -= out;
            squares -= out * out;
        }
        const float n = (float)(min(y + r, height - 1) - max(y - r, 0) + 1);
        const float mean = sum / n;
        dst[(size_t)y * width + x] = (float2)(mean, sqrt(fmax(squares / n - mean * mean, 0.0f)));
    }
}
