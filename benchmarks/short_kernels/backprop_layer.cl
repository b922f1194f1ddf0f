kernel void bp(global const float *x, global const float *w, global float *o, int n, int H)
{
    int j = get_global_id(0);
    float s = 0;
    for (int i = 0; i < n; i++)
        s += x[i] * w[i * H + j];
    o[j] = 1.f / (1.f + exp(-s));
}
