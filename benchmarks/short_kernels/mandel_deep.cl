kernel void md(global uchar *o, int w, int h, int m)
{
    int x = get_global_id(0), y = get_global_id(1);
    float a = -2.2f + 3.f * x / w, b = -1.2f + 2.4f * y / h, p = 0, q = 0;
    int k = 0;
    while (k < m && p * p + q * q < 4) {
        float t = p * p - q * q + a;
        q = 2 * p * q + b;
        p = t;
        k++;
    }
    o[y * w + x] = k & 255;
}
