kernel void heat(global const float *a, global float *b, int n)
{
    int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x < 1 || y < 1 || z < 1 || x > n - 2 || y > n - 2 || z > n - 2)
        return;
    int p = (z * n + y) * n + x;
    b[p] = a[p] + .1f * (a[p - 1] + a[p + 1] + a[p - n] + a[p + n] + a[p - n * n] + a[p + n * n] -
                         6 * a[p]);
}
