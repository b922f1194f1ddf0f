// A nine-point stencil over the inner points of a grid with a border of one point. A work-group
// makes STEPS rows of as many points as it has work-items; it loads these with what surrounds them
// into local memory.
#define STEPS 8

__kernel __attribute__((reqd_work_group_size(BLOCK_X, 1, 1)))
void stencil(__global const float *restrict source,
             __global float *restrict target,
             const int pitch,
             const float centre,
             const float cardinal,
             const float diagonal)
{
    __local float tile[STEPS + 2][BLOCK_X + 2];
    const int lx = get_local_id(0);
    const size_t corner = get_group_id(1) * (size_t)STEPS * pitch + get_group_id(0) * BLOCK_X;
    for (int y = 0; y < STEPS + 2; ++y) {
        tile[y][lx] = source[corner + y * pitch + lx];
        if (lx < 2) {
            tile[y][BLOCK_X + lx] = source[corner + y * pitch + BLOCK_X + lx];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int y = 1; y <= STEPS; ++y) {
        const int x = lx + 1;
        const float beside = tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1];
        const float across =
            tile[y - 1][x - 1] + tile[y - 1][x + 1] + tile[y + 1][x - 1] + tile[y + 1][x + 1];
        target[corner + y * pitch + x] =
            centre * tile[y][x] + cardinal * beside + diagonal * across;
    }
}
