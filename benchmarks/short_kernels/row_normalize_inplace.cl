kernel void norm(global float *a, int c)
{
    int i = get_global_id(0);
    float s = 0, q = 0;
    for (int j = 0; j < c; j++) {
        float v = a[i * c + j];
        s += v;
        q += v * v;
    }
    float m = s / c;
    float k = rsqrt(q / c - m * m + 1e-5f);
    for (int j = 0; j < c; j++)
        a[i * c + j] = (a[i * c + j] - m) * k;
}
