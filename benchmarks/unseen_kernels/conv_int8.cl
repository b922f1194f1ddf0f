// A 3 x 3 convolution of 8 bit numbers, channels last in fours, then brought back to 8 bits.
kernel void conv(global const char4 *in, constant char4 *weights, global char *out, int width, int height,
                 int quads, int filters, float scale)
{
    int f = get_global_id(0), x = get_global_id(1), y = get_global_id(2), sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int u = x + dx, v = y + dy;
            if (u < 0 || u >= width || v < 0 || v >= height)
                continue;
            for (int q = 0; q < quads; q++) {
                int4 a = convert_int4(in[(v * width + u) * quads + q]);
                int4 b = convert_int4(weights[((f * 3 + dy + 1) * 3 + dx + 1) * quads + q]);
                int4 p = a * b;
                sum += p.x + p.y + p.z + p.w;
            }
        }
    out[(y * width + x) * filters + f] = convert_char_sat_rte(max(sum, 0) * scale);
}
