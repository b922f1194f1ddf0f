/* A star of radius 4 in two dimensions; the border is copied. */
__kernel void stencil(__global const float *in, __global float *out, const int n)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    float value = in[y * n + x];
    if (x >= 4 && x < n - 4 && y >= 4 && y < n - 4) {
        value *= 0.2f;
        for (int r = 1; r <= 4; ++r)
            value += 0.05f * (in[y * n + x - r] + in[y * n + x + r]
                              + in[(y - r) * n + x] + in[(y + r) * n + x]);
    }
    out[y * n + x] = value;
}
