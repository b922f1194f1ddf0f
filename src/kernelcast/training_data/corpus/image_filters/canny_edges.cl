// Two steps of Canny's detector: Sobel's gradient of the tile and a pixel around it goes to local
// memory; a pixel then keeps its strength only if no neighbour along the gradient is stronger.
#define WIDE (TILE_X + 2)
#define HIGH (TILE_Y + 2)

inline int2 find_gradient(__global const uchar *image, const int x, const int y, const int width,
                          const int height)
{
    const int left = clamp(x - 1, 0, width - 1);
    const int middle = clamp(x, 0, width - 1);
    const int right = clamp(x + 1, 0, width - 1);
    __global const uchar *above = image + (size_t)clamp(y - 1, 0, height - 1) * width;
    __global const uchar *here = image + (size_t)clamp(y, 0, height - 1) * width;
    __global const uchar *below = image + (size_t)clamp(y + 1, 0, height - 1) * width;
    const int along_x = above[right] + 2 * here[right] + below[right]
                        - above[left] - 2 * here[left] - below[left];
    const int along_y = below[left] + 2 * below[middle] + below[right]
                        - above[left] - 2 * above[middle] - above[right];
    return (int2)(along_x, along_y);
}

__kernel void canny_edges(__global const uchar *restrict image, __global ushort *restrict edges,
                          const int width, const int height, const int threshold)
{
    __local int strengths[HIGH * WIDE];
    const int lane = get_local_id(1) * TILE_X + get_local_id(0);
    const int left = get_group_id(0) * TILE_X - 1;
    const int top = get_group_id(1) * TILE_Y - 1;
    for (int i = lane; i < HIGH * WIDE; i += TILE_X * TILE_Y) {
        const int2 gradient = find_gradient(image, left + i % WIDE, top + i / WIDE, width, height);
        strengths[i] = abs(gradient.x) + abs(gradient.y);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int place = (get_local_id(1) + 1) * WIDE + get_local_id(0) + 1;
    const int strength = strengths[place];
    int kept = 0;
    if (strength >= threshold) {
        const int2 gradient = find_gradient(image, x, y, width, height);
        const int across = abs(gradient.x);
        const int down = abs(gradient.y);
        int step = WIDE;
        // 5 / 12 is near the tangent of 22.5 degrees
        if (12 * down <= 5 * across) {
            step = 1;
        } else if (12 * across > 5 * down) {
            step = (gradient.x > 0) == (gradient.y > 0) ? WIDE + 1 : WIDE - 1;
        }
        if (strength > strengths[place - step] && strength >= strengths[place + step]) {
            kept = strength;
        }
    }
    edges[(size_t)y * width + x] = kept;
}
