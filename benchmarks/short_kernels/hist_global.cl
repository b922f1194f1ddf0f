kernel void hg(global const uint *d, global uint *h, int n)
{
    int i = get_global_id(0);
    if (i < n)
        atomic_inc(&h[d[i] >> 20]);
}
