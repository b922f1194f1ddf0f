kernel void fw(global int *d, int n, int k)
{
    int j = get_global_id(0), i = get_global_id(1);
    int x = d[i * n + k] + d[k * n + j];
    if (x < d[i * n + j])
        d[i * n + j] = x;
}
