kernel void med(global const uchar4 *s, global uchar4 *d, int w, int h)
{
    int x = get_global_id(0), y = get_global_id(1);
    uchar4 v[9];
    int n = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++)
            v[n++] = s[clamp(y + j, 0, h - 1) * w + clamp(x + i, 0, w - 1)];
    for (int i = 0; i < 5; i++)
        for (int j = i + 1; j < 9; j++) {
            uchar4 a = min(v[i], v[j]), b = max(v[i], v[j]);
            v[i] = a;
            v[j] = b;
        }
    d[y * w + x] = v[4];
}
