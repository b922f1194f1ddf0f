kernel void fft(global float2 *a, int s, int n)
{
    int i = get_global_id(0);
    int k = i & (s - 1);
    int p = ((i - k) << 1) + k;
    float an = -3.14159265f * k / s;
    float c, q = sincos(an, &c);
    float2 u = a[p], v = a[p + s];
    float2 t = (float2)(v.x * c - v.y * q, v.x * q + v.y * c);
    a[p] = u + t;
    a[p + s] = u - t;
}
