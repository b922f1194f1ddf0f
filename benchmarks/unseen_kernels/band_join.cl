// Rows of two tables whose times lie close: one staged in local memory, a row of the other per work-item.
#define TILE 256
__attribute__((reqd_work_group_size(TILE, 1, 1)))
kernel void band_join(global const double *left_times, global const double *right_times,
                      global int *pairs, int right_count, double width)
{
    local double tile[TILE];
    double mine = left_times[get_global_id(0)];
    int found = 0;
    for (int first = 0; first < right_count; first += TILE) {
        tile[get_local_id(0)] = right_times[first + get_local_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < TILE; j++)
            found += fabs(mine - tile[j]) <= width;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    pairs[get_global_id(0)] = found;
}
