/* Sums the elements of each work-group's part: ITEMS per work-item, then a tree in local memory.
 * Elements of a work-item lie side by side (NEAR) or LX apart. */
__kernel __attribute__((reqd_work_group_size(LX, 1, 1)))
void reduction(__global const float *in, __global float *part)
{
    const int lx = get_local_id(0);
    __local float sum[LX];
#if NEAR
    const int first = (get_group_id(0) * LX + lx) * ITEMS, step = 1;
#else
    const int first = get_group_id(0) * (LX * ITEMS) + lx, step = LX;
#endif
    float own[CHAINS];
    for (int c = 0; c < CHAINS; c++)
        own[c] = 0.0f;
    for (int i = 0; i < ITEMS; i += CHAINS)
        for (int c = 0; c < CHAINS; c++)
            own[c] += in[first + (i + c) * step];
    float all = 0.0f;
    for (int c = 0; c < CHAINS; c++)
        all += own[c];
    sum[lx] = all;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = LX / 2; width > 0; width /= 2) {
        if (lx < width)
            sum[lx] += sum[lx + width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lx == 0)
        part[get_group_id(0)] = sum[0];
}
