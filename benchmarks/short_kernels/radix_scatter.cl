kernel void rs(global const uint *k, global const int *p, global uint *o, int n)
{
    int i = get_global_id(0);
    if (i < n)
        o[p[i]] = k[i];
}
