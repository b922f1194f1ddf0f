kernel void red(global const float *a, global float *o, local float *t)
{
    int l = get_local_id(0);
    t[l] = a[get_global_id(0)];
    for (int s = get_local_size(0) / 2; s > 0; s >>= 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < s)
            t[l] += t[l + s];
    }
    if (l == 0)
        o[get_group_id(0)] = t[0];
}
