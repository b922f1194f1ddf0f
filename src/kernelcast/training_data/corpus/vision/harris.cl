// Corners by Harris: a work-group puts the gradients of its tile and of two pixels around it into local
// memory; the matrix of their products, summed over 5 x 5 pixels, tells how much of a corner one is.
#define RADIUS 2
#define WIDE (TILE_X + 2 * RADIUS)
#define HIGH (TILE_Y + 2 * RADIUS)

__kernel __attribute__((reqd_work_group_size(TILE_X, TILE_Y, 1)))
void harris(__global const float *restrict image, __global float *restrict response,
            const int width, const int height, const float flatness)
{
    __local float2 gradients[HIGH][WIDE];
    const int lx = get_local_id(0);
    const int ly = get_local_id(1);
    const int left = get_group_id(0) * TILE_X - RADIUS;
    const int top = get_group_id(1) * TILE_Y - RADIUS;
    for (int row = ly; row < HIGH; row += TILE_Y) {
        const int y = clamp(top + row, 0, height - 1);
        __global const float *above = image + (size_t)max(y - 1, 0) * width;
        __global const float *here = image + (size_t)y * width;
        __global const float *below = image + (size_t)min(y + 1, height - 1) * width;
        for (int column = lx; column < WIDE; column += TILE_X) {
            const int x = clamp(left + column, 0, width - 1);
            gradients[row][column] = (float2)(here[min(x + 1, width - 1)] - here[max(x - 1, 0)],
                                              below[x] - above[x]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float xx = 0.0f;
    float xy = 0.0f;
    float yy = 0.0f;
    for (int dy = 0; dy <= 2 * RADIUS; ++dy) {
        for (int dx = 0; dx <= 2 * RADIUS; ++dx) {
            const float2 gradient = gradients[ly + dy][lx + dx];
            xx += gradient.x * gradient.x;
            xy += gradient.x * gradient.y;
            yy += gradient.y * gradient.y;
        }
    }
    response[(size_t)get_global_id(1) * width + get_global_id(0)]
        = xx * yy - xy * xy - flatness * (xx + yy) * (xx + yy);
}
