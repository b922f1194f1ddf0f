kernel void sobel(global const uchar *s, global uchar *d, int w, int h)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
        return;
    int p = y * w + x;
    int gx =
        s[p - w + 1] + 2 * s[p + 1] + s[p + w + 1] - s[p - w - 1] - 2 * s[p - 1] - s[p + w - 1];
    int gy =
        s[p + w - 1] + 2 * s[p + w] + s[p + w + 1] - s[p - w - 1] - 2 * s[p - w] - s[p - w + 1];
    d[p] = convert_uchar_sat((int)sqrt((float)(gx * gx + gy * gy)));
}
