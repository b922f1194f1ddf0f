#define BS 16

kernel void nw(global const int *ref, global int *it, int cols, int pen, int blk, int nb)
{
    local int t[BS + 1][BS + 1], r[BS][BS];
    int bx = get_group_id(0), tx = get_local_id(0);
    int x = bx, y = blk - 1 - bx;
    int base = cols * BS * y + BS * x;
    for (int k = 0; k < BS; k++)
        r[k][tx] = ref[base + cols * (k + 1) + tx + 1];
    if (tx == 0)
        t[0][0] = it[base];
    t[tx + 1][0] = it[base + cols * (tx + 1)];
    t[0][tx + 1] = it[base + tx + 1];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int m = 0; m < BS; m++) {
        if (tx <= m) {
            int xx = tx + 1, yy = m - tx + 1;
            t[yy][xx] = max(t[yy - 1][xx - 1] + r[yy - 1][xx - 1],
                            max(t[yy][xx - 1] - pen, t[yy - 1][xx] - pen));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int m = BS - 2; m >= 0; m--) {
        if (tx <= m) {
            int xx = tx + BS - m, yy = BS - tx;
            t[yy][xx] = max(t[yy - 1][xx - 1] + r[yy - 1][xx - 1],
                            max(t[yy][xx - 1] - pen, t[yy - 1][xx] - pen));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int k = 0; k < BS; k++)
        it[base + cols * (k + 1) + tx + 1] = t[k + 1][tx + 1];
}
