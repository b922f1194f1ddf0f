// The transpose of a row-major matrix. Neighbouring work-items load neighbouring values and store
// them `height` apart.
__kernel void transpose_naive(__global float *restrict target,
                              __global const float *restrict source,
                              const uint width,
                              const uint height)
{
    const uint x = get_global_id(0);
    const uint y = get_global_id(1);
    if (x < width && y < height) {
        target[(size_t)x * height + y] = source[(size_t)y * width + x];
    }
}
