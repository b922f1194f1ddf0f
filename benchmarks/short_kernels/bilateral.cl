kernel void bil(global const float *s, global float *d, int w, int h, int r, float is, float ir)
{
    int x = get_global_id(0), y = get_global_id(1);
    float c = s[y * w + x], a = 0, b = 0;
    for (int j = -r; j <= r; j++)
        for (int i = -r; i <= r; i++) {
            int xx = clamp(x + i, 0, w - 1), yy = clamp(y + j, 0, h - 1);
            float v = s[yy * w + xx];
            float k = native_exp(-(i * i + j * j) * is - (v - c) * (v - c) * ir);
            a += k * v;
            b += k;
        }
    d[y * w + x] = a / b;
}
