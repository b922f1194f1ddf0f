// Counts of the 256 byte values: a private histogram per work-group in local memory, added to the
// global one with atomics at the end.
#define BINS 256

__kernel void histogram(__global const uchar *restrict values,
                        __global int *restrict counts,
                        const long count)
{
    __local int bins[BINS];

    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    for (int bin = lane; bin < BINS; bin += lanes) {
        bins[bin] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    const long begin = (long)get_group_id(0) * lanes * PER_WORK_ITEM + lane;
    for (int k = 0; k < PER_WORK_ITEM; ++k) {
        const long i = begin + (long)k * lanes;
        if (i < count) {
            atomic_inc(&bins[values[i]]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int bin = lane; bin < BINS; bin += lanes) {
        if (bins[bin] > 0) {
            atomic_add(&counts[bin], bins[bin]);
        }
    }
}
