// A step of a star-shaped stencil of radius RADIUS in three dimensions. A work-group has a column
// of the volume and walks along z: the values before and behind stay in registers, the layer at
// work lies with its halo in local memory. The volume is padded by RADIUS cells on every side.
__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1)))
void finite_differences(__global float *restrict output,
                        __global const float *restrict input,
                        __constant float *coefficients,
                        const int size_x,
                        const int size_y,
                        const int size_z)
{
    __local float tile[BLOCK_Y + 2 * RADIUS][BLOCK_X + 2 * RADIUS];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int tx = lx + RADIUS;
    const int ty = ly + RADIUS;
    const int pitch = size_x + 2 * RADIUS;
    const int layer = pitch * (size_y + 2 * RADIUS);
    int cell = ((int)get_global_id(1) + RADIUS) * pitch + (int)get_global_id(0) + RADIUS;

    float behind[RADIUS];
    float front[RADIUS];
    // behind[k] is k + 1 layers before the one at work, front[k] is k + 1 layers after it
    for (int k = 0; k < RADIUS; ++k) {
        behind[k] = input[cell + (RADIUS - 1 - k) * layer];
    }
    cell += RADIUS * layer;
    float current = input[cell];
    for (int k = 0; k < RADIUS; ++k) {
        front[k] = input[cell + (k + 1) * layer];
    }

    for (int z = 0; z < size_z; ++z) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (ly < RADIUS) {
            tile[ly][tx] = input[cell - RADIUS * pitch];
            tile[ly + BLOCK_Y + RADIUS][tx] = input[cell + BLOCK_Y * pitch];
        }
        if (lx < RADIUS) {
            tile[ty][lx] = input[cell - RADIUS];
            tile[ty][lx + BLOCK_X + RADIUS] = input[cell + BLOCK_X];
        }
        tile[ty][tx] = current;
        barrier(CLK_LOCAL_MEM_FENCE);

        float sum = coefficients[0] * current;
        for (int k = 1; k <= RADIUS; ++k) {
            sum += coefficients[k] * (front[k - 1] + behind[k - 1] + tile[ty - k][tx]
                                      + tile[ty + k][tx] + tile[ty][tx - k] + tile[ty][tx + k]);
        }
        output[cell] = sum;

        for (int k = RADIUS - 1; k > 0; --k) {
            behind[k] = behind[k - 1];
        }
        behind[0] = current;
        current = front[0];
        for (int k = 0; k < RADIUS - 1; ++k) {
            front[k] = front[k + 1];
        }
        cell += layer;
        // the layer that the step after next needs last; none is left at the end
        if (z + 1 < size_z) {
            front[RADIUS - 1] = input[cell + RADIUS * layer];
        }
    }
}
