kernel void corr(global float *c, global const float *d, int m, int n)
{
    int j1 = get_global_id(0);
    if (j1 < m - 1) {
        c[j1 * m + j1] = 1;
        for (int j2 = j1 + 1; j2 < m; j2++) {
            float s = 0;
            for (int i = 0; i < n; i++)
                s += d[i * m + j1] * d[i * m + j2];
            c[j1 * m + j2] = s;
            c[j2 * m + j1] = s;
        }
    }
}
