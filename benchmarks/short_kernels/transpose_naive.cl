kernel void tr(global const float *a, global float *b, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    b[x * n + y] = a[y * n + x];
}
