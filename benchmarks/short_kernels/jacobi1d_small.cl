kernel void j1(global const float *a, global float *b, int n)
{
    int i = get_global_id(0);
    if (i > 0 && i < n - 1)
        b[i] = 0.33333f * (a[i - 1] + a[i] + a[i + 1]);
}
