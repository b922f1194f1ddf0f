// C = L * B with a lower triangular matrix L, in tiles of SIDE * SIDE: a row of tiles needs L up to
// its diagonal only. What stands above L's diagonal does not count.
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void triangular_product(__global const float *restrict lower, __global const float *restrict b,
                        __global float *restrict c, const int n)
{
    __local float left[SIDE][SIDE];
    __local float right[SIDE][SIDE];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int row = get_global_id(1);
    const size_t column = get_global_id(0);
    const size_t columns = get_global_size(0);
    const int end = (get_group_id(1) + 1) * SIDE;
    float sum = 0.0f;
    for (int begin = 0; begin < end; begin += SIDE) {
        left[y][x] = begin + x <= row ? lower[(size_t)row * n + begin + x] : 0.0f;
        right[y][x] = b[(begin + y) * columns + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < SIDE; ++i) {
            sum += left[y][i] * right[i][x];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * columns + column] = sum;
}
