kernel void lbm(global const float *f, global float *g, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    const float w[9] = {4.f / 9,  1.f / 9,  1.f / 9,  1.f / 9, 1.f / 9,
                        1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};
    float r = 0, u = 0, v = 0, q[9];
    for (int k = 0; k < 9; k++) {
        int xx = (x - cx[k] + n) % n, yy = (y - cy[k] + n) % n;
        q[k] = f[(k * n + yy) * n + xx];
        r += q[k];
        u += q[k] * cx[k];
        v += q[k] * cy[k];
    }
    u /= r;
    v /= r;
    for (int k = 0; k < 9; k++) {
        float e = cx[k] * u + cy[k] * v;
        g[(k * n + y) * n + x] =
            q[k] - .6f * (q[k] - w[k] * r * (1 + 3 * e + 4.5f * e * e - 1.5f * (u * u + v * v)));
    }
}
