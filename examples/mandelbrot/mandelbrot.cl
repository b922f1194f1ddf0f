// How long each point of the plane stays within the circle of radius 2. Contraction is off so that
// every device rounds alike and counts the same.
#pragma OPENCL FP_CONTRACT OFF

inline int count_iterations(const float re, const float im, const int limit)
{
    float x = 0.0f;
    float y = 0.0f;
    int count = 0;
    while (count < limit && x * x + y * y <= 4.0f) {
        const float next_x = x * x - y * y + re;
        y = 2.0f * x * y + im;
        x = next_x;
        ++count;
    }
    return count;
}

__kernel void mandelbrot(__global int *restrict counts,
                         const int width,
                         const float left,
                         const float bottom,
                         const float pixel,
                         const int limit)
{
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    const float re = left + column * pixel;
    const float im = bottom + row * pixel;
    counts[row * width + column] = count_iterations(re, im, limit);
}
