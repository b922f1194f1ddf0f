// Many products of 8 x 8 matrices: an element a work-item, a layer of the work-group a matrix.
__kernel __attribute__((reqd_work_group_size(8, 8, MATRICES)))
void batched_8x8(__global const float *restrict a, __global const float *restrict b,
                 __global float *restrict c)
{
    __local float left[MATRICES][8][8];
    __local float right[MATRICES][8][8];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int z = get_local_id(2);
    const size_t place = get_global_id(2) * 64 + y * 8 + x;
    left[z][y][x] = a[place];
    right[z][y][x] = b[place];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i) {
        sum += left[z][y][i] * right[z][i][x];
    }
    c[place] = sum;
}
