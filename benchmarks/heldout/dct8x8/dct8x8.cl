// Integer cosine transform of 8x8 blocks with quantisation, one work-group per block.

__constant short basis[64] = {
    64,  64,  64,  64,  64,  64,  64,  64,  89,  75,  50,  18,  -18, -50, -75, -89,
    83,  36,  -36, -83, -83, -36, 36,  83,  75,  -18, -89, -50, 50,  89,  18,  -75,
    64,  -64, -64, 64,  64,  -64, -64, 64,  50,  -89, 18,  75,  -75, -18, 89,  -50,
    36,  -83, 83,  -36, -36, 83,  -83, 36,  18,  -50, 75,  -89, 89,  -75, 50,  -18};

__kernel void dct8x8(__global const uchar *image, __global short *coefficients,
                     __constant int *reciprocal, const int width)
{
    __local int pixels[8][9];
    __local int rows[8][9];
    const int u = get_local_id(0);
    const int v = get_local_id(1);
    const size_t at = get_global_id(1) * width + get_global_id(0);

    pixels[v][u] = (int)image[at] - 128;
    barrier(CLK_LOCAL_MEM_FENCE);

    int sum = 0;
    for (int i = 0; i < 8; ++i)
        sum += basis[u * 8 + i] * pixels[v][i];
    rows[v][u] = (sum + 2) >> 2;
    barrier(CLK_LOCAL_MEM_FENCE);

    sum = 0;
    for (int i = 0; i < 8; ++i)
        sum += basis[v * 8 + i] * rows[i][u];
    const int value = (sum + 256) >> 9;

    const int magnitude = (abs(value) * reciprocal[v * 8 + u] + (1 << 13)) >> 14;
    coefficients[at] = value < 0 ? -magnitude : magnitude;
}
