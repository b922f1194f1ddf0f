// A separable convolution of radius RADIUS. A work-group of BLOCK_X * BLOCK_Y work-items makes
// STEPS blocks of results beside each other; it loads them with one block of halo at both ends
// into local memory. What lies outside the image is zero.
#define HALO 1

__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1)))
void convolution_rows(__global float *restrict target,
                      __global const float *restrict source,
                      __constant float *weights,
                      const int width,
                      const int pitch)
{
    __local float tile[BLOCK_Y][(STEPS + 2 * HALO) * BLOCK_X];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int first = ((int)get_group_id(0) * STEPS - HALO) * BLOCK_X + lx;
    const int begin = (int)get_global_id(1) * pitch;

    for (int i = HALO; i < HALO + STEPS; ++i) {
        tile[ly][lx + i * BLOCK_X] = source[begin + first + i * BLOCK_X];
    }
    tile[ly][lx] = first >= 0 ? source[begin + first] : 0.0f;
    const int last = HALO + STEPS;
    tile[ly][lx + last * BLOCK_X] =
        first + last * BLOCK_X < width ? source[begin + first + last * BLOCK_X] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int i = HALO; i < HALO + STEPS; ++i) {
        float sum = 0.0f;
        for (int k = -RADIUS; k <= RADIUS; ++k) {
            sum += weights[RADIUS - k] * tile[ly][lx + i * BLOCK_X + k];
        }
        target[begin + first + i * BLOCK_X] = sum;
    }
}

// The tile is stored column by column, one cell of padding a column against bank conflicts.
__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1)))
void convolution_columns(__global float *restrict target,
                         __global const float *restrict source,
                         __constant float *weights,
                         const int height,
                         const int pitch)
{
    __local float tile[BLOCK_X][(STEPS + 2 * HALO) * BLOCK_Y + 1];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int first = ((int)get_group_id(1) * STEPS - HALO) * BLOCK_Y + ly;
    const int column = get_global_id(0);

    for (int i = HALO; i < HALO + STEPS; ++i) {
        tile[lx][ly + i * BLOCK_Y] = source[(first + i * BLOCK_Y) * pitch + column];
    }
    tile[lx][ly] = first >= 0 ? source[first * pitch + column] : 0.0f;
    const int last = HALO + STEPS;
    tile[lx][ly + last * BLOCK_Y] =
        first + last * BLOCK_Y < height ? source[(first + last * BLOCK_Y) * pitch + column] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int i = HALO; i < HALO + STEPS; ++i) {
        float sum = 0.0f;
        for (int k = -RADIUS; k <= RADIUS; ++k) {
            sum += weights[RADIUS - k] * tile[lx][ly + i * BLOCK_Y + k];
        }
        target[(first + i * BLOCK_Y) * pitch + column] = sum;
    }
}
