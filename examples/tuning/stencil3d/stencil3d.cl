/* Seven-point stencil on a grid with a margin of 1; a work-item makes DEPTH layers. */
__kernel void stencil3d(__global const float *in, __global float *out, int pitch, int layer)
{
    const int x = get_global_id(0) + 1, y = get_global_id(1) + 1;
    const int front = get_global_id(2) * DEPTH + 1;
    int at = front * layer + y * pitch + x;
#if MARCH
    float behind = in[at - layer], here = in[at];
    for (int z = 0; z < DEPTH; z++) {
        const float ahead = in[at + layer];
        out[at] = 0.4f * here + 0.1f * (in[at - 1] + in[at + 1] + in[at - pitch] + in[at + pitch]
            + behind + ahead);
        behind = here;
        here = ahead;
        at += layer;
    }
#else
    for (int z = 0; z < DEPTH; z++) {
        const int to = at + z * layer;
        out[to] = 0.4f * in[to] + 0.1f * (in[to - 1] + in[to + 1] + in[to - pitch] + in[to + pitch]
            + in[to - layer] + in[to + layer]);
    }
#endif
}
