// In-loop deblocking of the vertical edges of 8 x 8 luma blocks: a row of an edge per work-item.
kernel void deblock(global uchar *luma, int stride, int alpha, int beta, int tc)
{
    int edge = get_global_id(0) + 1, row = get_global_id(1);
    global uchar *s = luma + row * stride + 8 * edge;
    int p2 = s[-3], p1 = s[-2], p0 = s[-1], q0 = s[0], q1 = s[1], q2 = s[2];
    if (abs(p0 - q0) < alpha && abs(p1 - p0) < beta && abs(q1 - q0) < beta) {
        int d = clamp(((q0 - p0) * 4 + (p1 - q1) + 4) >> 3, -tc, tc);
        s[-1] = convert_uchar_sat(p0 + d);
        s[0] = convert_uchar_sat(q0 - d);
        if (abs(p2 - p0) < beta)
            s[-2] = p1 + clamp((p2 + ((p0 + q0 + 1) >> 1) - 2 * p1) >> 1, -tc, tc);
        if (abs(q2 - q0) < beta)
            s[1] = q1 + clamp((q2 + ((p0 + q0 + 1) >> 1) - 2 * q1) >> 1, -tc, tc);
    }
}
