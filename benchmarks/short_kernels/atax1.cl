kernel void atax(global const float *A, global const float *x, global float *t, int n, int m)
{
    int i = get_global_id(0);
    if (i < n) {
        float s = 0;
        for (int j = 0; j < m; j++)
            s += A[i * m + j] * x[j];
        t[i] = s;
    }
}
