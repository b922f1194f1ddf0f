kernel void lcs(global const uchar *a, global const uchar *b, global const int *p2,
                global const int *p1, global int *c, int d, int n)
{
    int i = get_global_id(0);
    int j = d - i;
    if (i >= 1 && i <= n && j >= 1 && j <= n) {
        if (a[i - 1] == b[j - 1])
            c[i] = p2[i - 1] + 1;
        else
            c[i] = max(p1[i - 1], p1[i]);
    }
}
