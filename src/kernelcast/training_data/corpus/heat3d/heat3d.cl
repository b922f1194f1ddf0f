// A step of the heat equation over a grid with a border of one point: nx, ny and nz count inner
// points.

__kernel void heat_points(__global const float *restrict old, __global float *restrict new,
                          const float share)
{
    const size_t pitch = get_global_size(0) + 2;
    const size_t layer = pitch * (get_global_size(1) + 2);
    const size_t i = (get_global_id(2) + 1) * layer + (get_global_id(1) + 1) * pitch
                     + get_global_id(0) + 1;
    const float around =
        old[i - 1] + old[i + 1] + old[i - pitch] + old[i + pitch] + old[i - layer] + old[i + layer];
    new[i] = old[i] + share * (around - 6.0f * old[i]);
}

// Layers of a column of points; the build options give the size of a work-group's block.
#define LAYERS 32
#ifndef BLOCK_X
#define BLOCK_X 64
#define BLOCK_Y 4
#endif

// Layer by layer along z: the points above and below stay in registers, those of the layer lie in
// local memory with a border.
__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1)))
void heat_columns(__global const float *restrict old, __global float *restrict new,
                  const float share)
{
    __local float tile[BLOCK_Y + 2][BLOCK_X + 2];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const size_t pitch = get_global_size(0) + 2;
    const size_t layer = pitch * (get_global_size(1) + 2);
    size_t i = (get_global_id(2) * LAYERS + 1) * layer + (get_global_id(1) + 1) * pitch
               + get_global_id(0) + 1;
    float below = old[i - layer];
    float here = old[i];
    for (int z = 0; z < LAYERS; ++z) {
        const float above = old[i + layer];
        tile[ly + 1][lx + 1] = here;
        if (lx == 0) {
            tile[ly + 1][0] = old[i - 1];
        }
        if (lx == BLOCK_X - 1) {
            tile[ly + 1][BLOCK_X + 1] = old[i + 1];
        }
        if (ly == 0) {
            tile[0][lx + 1] = old[i - pitch];
        }
        if (ly == BLOCK_Y - 1) {
            tile[BLOCK_Y + 1][lx + 1] = old[i + pitch];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const float around = tile[ly + 1][lx] + tile[ly + 1][lx + 2] + tile[ly][lx + 1]
                             + tile[ly + 2][lx + 1] + below + above;
        new[i] = here + share * (around - 6.0f * here);
        barrier(CLK_LOCAL_MEM_FENCE);
        below = here;
        here = above;
        i += layer;
    }
}
