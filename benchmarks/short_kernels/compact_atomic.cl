kernel void cmp(global const float *a, global float *o, global int *cnt, float th, int n)
{
    int i = get_global_id(0);
    float v = a[i];
    if (v > th) {
        int p = atomic_inc(cnt);
        o[p] = v;
    }
}
