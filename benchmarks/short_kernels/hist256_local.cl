kernel void hist(global const uchar *d, global uint *h, int n)
{
    local uint l[256];
    int t = get_local_id(0);
    l[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&l[d[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&h[t], l[t]);
}
