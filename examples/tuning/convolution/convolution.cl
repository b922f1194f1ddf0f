/* Filters an image with a window of SIZE * SIZE weights; the image has a margin of SIZE - 1.
 * A work-item makes COLUMNS pixels side by side (NEAR) or LX apart, in ROWS rows. */
__kernel void convolution(__global const float *image, __global const float *weight,
                          __global float *result, int width, int pitch)
{
    const int lx = get_local_id(0), ly = get_local_id(1);
#if NEAR
    const int left = (get_group_id(0) * LX + lx) * COLUMNS, step = 1;
#else
    const int left = get_group_id(0) * (LX * COLUMNS) + lx, step = LX;
#endif
    const int top = (get_group_id(1) * LY + ly) * ROWS;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            const int x = left + c * step, y = top + r;
            float sum = 0.0f;
            for (int v = 0; v < SIZE; v++)
                for (int u = 0; u < SIZE; u++)
                    sum += weight[v * SIZE + u] * image[(y + v) * pitch + x + u];
            result[y * width + x] = sum;
        }
}
