/* y = a x + y; ITEMS elements per work-item, side by side or LX apart. */
__kernel void axpy(__global const float *x, __global float *y, float a)
{
#if STRIDED
    const int first = get_group_id(0) * (LX * ITEMS) + get_local_id(0);
    const int step = LX;
#else
    const int first = get_global_id(0) * ITEMS;
    const int step = 1;
#endif
    for (int i = 0; i < ITEMS; i++)
        y[first + i * step] = a * x[first + i * step] + y[first + i * step];
}
