
#if DIMENSIONS == 2
#define AT(dx, dy) from[(y + R + (dy)) * (size_t)(WIDTH + 2 * R) + x + R + (dx)]
kernel void kc_stencil(global const float *from, global float *to)
{
    int x = get_global_id(0);
    for (int f = 0; f < FOLD; ++f) {
        int y = get_global_id(1) * FOLD + f;
        float sum = AT(0, 0);
        for (int r = 1; r <= R; ++r)
            sum += 0.1f * r * (AT(r, 0) + AT(-r, 0) + AT(0, r) + AT(0, -r));
        to[y * (size_t)WIDTH + x] = sum;
    }
}
#else
#define AT(dx, dy, dz) from[((z + R + (dz)) * (size_t)(HEIGHT + 2 * R) + y + R + (dy)) \
                            * (WIDTH + 2 * R) + x + R + (dx)]
kernel void kc_stencil(global const float *from, global float *to)
{
    int x = get_global_id(0), y = get_global_id(1);
    for (int f = 0; f < FOLD; ++f) {
        int z = get_global_id(2) * FOLD + f;
        float sum = AT(0, 0, 0);
        for (int r = 1; r <= R; ++r)
            sum += 0.1f * r * (AT(r, 0, 0) + AT(-r, 0, 0) + AT(0, r, 0) + AT(0, -r, 0)
                               + AT(0, 0, r) + AT(0, 0, -r));
        to[(z * (size_t)HEIGHT + y) * WIDTH + x] = sum;
    }
}
#endif
