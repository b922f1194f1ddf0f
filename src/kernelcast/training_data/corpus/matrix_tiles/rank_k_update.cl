// C = C - A * B with few columns of A, as after each panel of a factorisation: most of the time goes
// into C. A work-group stages its rows of A and its columns of B.
#define DEPTH 32

__kernel __attribute__((reqd_work_group_size(TILE_X, TILE_Y, 1)))
void rank_k_update(__global const float *restrict a, __global const float *restrict b,
                   __global float *restrict c, const int n)
{
    __local float rows[TILE_Y][DEPTH];
    __local float columns[DEPTH][TILE_X];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const size_t row = get_global_id(1);
    const size_t column = get_global_id(0);
    for (int i = x; i < DEPTH; i += TILE_X) {
        rows[y][i] = a[row * DEPTH + i];
    }
    for (int i = y; i < DEPTH; i += TILE_Y) {
        columns[i][x] = b[(size_t)i * n + column];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int i = 0; i < DEPTH; ++i) {
        sum += rows[y][i] * columns[i][x];
    }
    c[row * n + column] -= sum;
}
