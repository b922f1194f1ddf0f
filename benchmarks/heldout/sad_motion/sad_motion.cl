// Full-search motion estimation: one work-group per 16x16 block, one work-item per displacement.
// The previous frame carries a border of eight pixels on every side.

#define BLOCK 16
#define WINDOW 31

__kernel void sad_motion(__global const uchar *current, __global const uchar *previous,
                         __global short2 *vectors, __global ushort *costs, const int width)
{
    __local uchar block[BLOCK * BLOCK];
    __local uchar window[WINDOW * WINDOW];
    __local uint best;

    const int dx = get_local_id(0);
    const int dy = get_local_id(1);
    const int lid = dy * BLOCK + dx;
    const int left = get_group_id(0) * BLOCK;
    const int top = get_group_id(1) * BLOCK;
    const int stride = width + BLOCK;

    block[lid] = current[(top + dy) * width + left + dx];
    for (int i = lid; i < WINDOW * WINDOW; i += BLOCK * BLOCK)
        window[i] = previous[(top + i / WINDOW) * stride + left + i % WINDOW];
    if (lid == 0)
        best = 0xffffffffu;
    barrier(CLK_LOCAL_MEM_FENCE);

    uint sad = 0;
    for (int y = 0; y < BLOCK; ++y)
        for (int x = 0; x < BLOCK; ++x)
            sad += abs_diff(block[y * BLOCK + x], window[(dy + y) * WINDOW + dx + x]);
    atomic_min(&best, (sad << 8) | lid);
    barrier(CLK_LOCAL_MEM_FENCE);

    if (lid == 0) {
        const int at = get_group_id(1) * get_num_groups(0) + get_group_id(0);
        const int winner = best & 0xff;
        vectors[at] = (short2)(winner % BLOCK - 8, winner / BLOCK - 8);
        costs[at] = best >> 8;
    }
}
