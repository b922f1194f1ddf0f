kernel void thomas(global const float *a, global const float *d, global float *x, global float *cp,
                   int n, int B)
{
    int b = get_global_id(0);
    float c = 1.f / (a[b] + 4.f);
    cp[b] = c;
    x[b] = d[b] * c;
    for (int i = 1; i < n; i++) {
        int k = i * B + b;
        float m = 1.f / (4.f + a[k] - cp[k - B]);
        cp[k] = m;
        x[k] = (d[k] - x[k - B]) * m;
    }
    for (int i = n - 2; i >= 0; i--) {
        int k = i * B + b;
        x[k] -= cp[k] * x[k + B];
    }
}
