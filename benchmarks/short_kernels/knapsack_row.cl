kernel void ks(global const int *a, global int *b, int wt, int v, int W)
{
    int i = get_global_id(0);
    if (i <= W) {
        int x = a[i];
        if (i >= wt)
            x = max(x, a[i - wt] + v);
        b[i] = x;
    }
}
