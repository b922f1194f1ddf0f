kernel void pf(global const int *w, global const int *s, global int *d, int n, int t)
{
    int i = get_global_id(0);
    int m = s[i];
    if (i > 0)
        m = min(m, s[i - 1]);
    if (i < n - 1)
        m = min(m, s[i + 1]);
    d[i] = m + w[t * n + i];
}
