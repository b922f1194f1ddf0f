kernel void hs(global const float *t, global const float *p, global float *o, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    int N = max(y - 1, 0), S = min(y + 1, n - 1), W = max(x - 1, 0), E = min(x + 1, n - 1);
    float c = t[y * n + x];
    o[y * n + x] = c + .01f * (p[y * n + x] + (t[N * n + x] + t[S * n + x] - 2 * c) * .3f +
                               (t[y * n + W] + t[y * n + E] - 2 * c) * .3f + (80 - c) * .2f);
}
