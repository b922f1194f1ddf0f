kernel void md(global const float4 *p, global const int *nb, global float4 *f, int K)
{
    int i = get_global_id(0);
    float4 a = p[i], s = 0;
    for (int k = 0; k < K; k++) {
        float4 d = p[nb[i * K + k]] - a;
        float r2 = d.x * d.x + d.y * d.y + d.z * d.z;
        if (r2 < 0.5f) {
            float r = 1.f / (r2 + 1e-3f);
            float q = r * r * r;
            s += d * (q * (q - .5f) * r);
        }
    }
    f[i] = s;
}
