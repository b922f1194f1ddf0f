
#ifdef CONVOLUTION
#define F 7
kernel void kc_convolution(global const float *from, global const float *filter, global float *to)
{
    int x = get_group_id(0) * (BX * TX) + get_local_id(0);
    int y = get_group_id(1) * (BY * TY) + get_local_id(1);
    float sum[TY][TX];
    for (int j = 0; j < TY; ++j)
        for (int i = 0; i < TX; ++i)
            sum[j][i] = 0.0f;
    for (int fy = 0; fy < F; ++fy)
        for (int fx = 0; fx < F; ++fx)
            for (int j = 0; j < TY; ++j)
                for (int i = 0; i < TX; ++i)
                    sum[j][i] += filter[fy * F + fx]
                                 * from[(y + j * BY + fy) * (N + F - 1) + x + i * BX + fx];
    for (int j = 0; j < TY; ++j)
        for (int i = 0; i < TX; ++i)
            to[(y + j * BY) * N + x + i * BX] = sum[j][i];
}
#else
kernel void kc_product(global const float *a, global const float *b, global float *c)
{
    local float left[KB][BY * TY], right[KB][BX * TX];
    int lx = get_local_id(0), ly = get_local_id(1), item = ly * BX + lx;
    int x = get_group_id(0) * (BX * TX), y = get_group_id(1) * (BY * TY);
    float sum[TY][TX];
    for (int j = 0; j < TY; ++j)
        for (int i = 0; i < TX; ++i)
            sum[j][i] = 0.0f;
    for (int k = 0; k < N; k += KB) {
        for (int i = item; i < BY * TY * KB; i += BX * BY)
            left[i % KB][i / KB] = a[(y + i / KB) * N + k + i % KB];
        for (int i = item; i < BX * TX * KB; i += BX * BY)
            right[i / (BX * TX)][i % (BX * TX)] = b[(k + i / (BX * TX)) * N + x + i % (BX * TX)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int s = 0; s < KB; ++s)
            for (int j = 0; j < TY; ++j)
                for (int i = 0; i < TX; ++i)
                    sum[j][i] += left[s][ly + j * BY] * right[s][lx + i * BX];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int j = 0; j < TY; ++j)
        for (int i = 0; i < TX; ++i)
            c[(y + ly + j * BY) * N + x + lx + i * BX] = sum[j][i];
}
#endif
