kernel void mg(global const int *a, global const int *b, global int *o, int n, int ch)
{
    int d = get_global_id(0) * ch;
    int lo = max(0, d - n), hi = min(d, n);
    while (lo < hi) {
        int m = (lo + hi) / 2;
        if (a[m] < b[d - 1 - m])
            lo = m + 1;
        else
            hi = m;
    }
    int i = lo, j = d - lo;
    for (int k = 0; k < ch; k++) {
        if (j >= n || (i < n && a[i] <= b[j]))
            o[d + k] = a[i++];
        else
            o[d + k] = b[j++];
    }
}
