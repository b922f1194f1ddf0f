kernel void ell(global const int *c, global const float *v, global const float *x, global float *y,
                int n, int K)
{
    int i = get_global_id(0);
    float s = 0;
    for (int k = 0; k < K; k++) {
        int j = c[k * n + i];
        if (j >= 0)
            s += v[k * n + i] * x[j];
    }
    y[i] = s;
}
