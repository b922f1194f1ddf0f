// Euclidean distances between all points of two sets, a pair a work-item.
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void pairwise_distances(__global const float *restrict points, __global const float *restrict others,
                        __global float *restrict distances, const int coordinates)
{
    // a column more than needed keeps work-items of a row on different banks
    __local float mine[SIDE][SIDE + 1];
    __local float theirs[SIDE][SIDE + 1];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const size_t point = get_global_id(1);
    const size_t other = get_group_id(0) * SIDE + y;
    float sum = 0.0f;
    for (int begin = 0; begin < coordinates; begin += SIDE) {
        mine[y][x] = points[point * coordinates + begin + x];
        theirs[y][x] = others[other * coordinates + begin + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < SIDE; ++i) {
            const float difference = mine[y][i] - theirs[x][i];
            sum += difference * difference;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    distances[point * get_global_size(0) + get_global_id(0)] = sqrt(sum);
}
