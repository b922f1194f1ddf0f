kernel void scan(global const int *a, global int *o, global int *sums, local int *t)
{
    int l = get_local_id(0), g = get_global_id(0), n = get_local_size(0);
    t[l] = a[g];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 1; s < n; s <<= 1) {
        int v = l >= s ? t[l - s] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        t[l] += v;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    o[g] = t[l];
    if (l == n - 1)
        sums[get_group_id(0)] = t[l];
}
