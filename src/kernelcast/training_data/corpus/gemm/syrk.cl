// The lower triangle of C = A * A^T: square tiles of both operands in local memory. Work-groups
// whose tile lies above the diagonal have nothing to do.
__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1)))
void syrk(__global const float *restrict a, __global float *restrict c, const int n, const int k)
{
    // a column more than needed keeps work-items of a row on different banks
    __local float left[SIDE][SIDE + 1];
    __local float right[SIDE][SIDE + 1];
    if (get_group_id(0) > get_group_id(1)) {
        return;
    }
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int row = get_global_id(1);
    const int column = get_global_id(0);
    const int other = get_group_id(0) * SIDE + y;
    float sum = 0.0f;
    for (int begin = 0; begin < k; begin += SIDE) {
        left[y][x] = a[(size_t)row * k + begin + x];
        right[y][x] = a[(size_t)other * k + begin + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < SIDE; ++i) {
            sum += left[y][i] * right[x][i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (column <= row) {
        c[(size_t)row * n + column] = sum;
    }
}
