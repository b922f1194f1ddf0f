// A Gaussian blur of radius 5 in one launch: a work-group loads its tile with the surroundings into
// local memory, blurs along x into a second tile, then along y. Edges repeat the last pixel.
#define RADIUS 5
#define WIDE (TILE_X + 2 * RADIUS)
#define HIGH (TILE_Y + 2 * RADIUS)

__kernel void gaussian(__global const float *restrict image, __global float *restrict blurred,
                       __constant float *weights, const int width, const int height)
{
    __local float tile[HIGH * WIDE];
    __local float blurred_rows[HIGH * TILE_X];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const int lane = y * TILE_X + x;
    const int left = get_group_id(0) * TILE_X - RADIUS;
    const int top = get_group_id(1) * TILE_Y - RADIUS;
    for (int i = lane; i < HIGH * WIDE; i += TILE_X * TILE_Y) {
        const int from_x = clamp(left + i % WIDE, 0, width - 1);
        const int from_y = clamp(top + i / WIDE, 0, height - 1);
        tile[i] = image[(size_t)from_y * width + from_x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int row = y; row < HIGH; row += TILE_Y) {
        float sum = 0.0f;
        for (int k = 0; k <= 2 * RADIUS; ++k) {
            sum += weights[k] * tile[row * WIDE + x + k];
        }
        blurred_rows[row * TILE_X + x] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int k = 0; k <= 2 * RADIUS; ++k) {
        sum += weights[k] * blurred_rows[(y + k) * TILE_X + x];
    }
    blurred[(size_t)get_global_id(1) * width + get_global_id(0)] = sum;
}
