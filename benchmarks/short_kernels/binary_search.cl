kernel void bsr(global const int *a, global const int *q, global int *o, int n)
{
    int i = get_global_id(0), k = q[i];
    int lo = 0, hi = n;
    while (lo < hi) {
        int m = (lo + hi) >> 1;
        if (a[m] < k)
            lo = m + 1;
        else
            hi = m;
    }
    o[i] = lo;
}
