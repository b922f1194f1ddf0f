kernel void ss(global const uchar *t, constant uchar *p, global int *c, int n, int m)
{
    int i = get_global_id(0);
    if (i > n - m)
        return;
    int j = 0;
    while (j < m && t[i + j] == p[j])
        j++;
    if (j == m)
        atomic_inc(c);
}
