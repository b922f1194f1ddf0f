// A generation of Conway's Game of Life on a torus.
__kernel void life(__global const uchar *restrict cells, __global uchar *restrict next)
{
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int left = x == 0 ? width - 1 : x - 1;
    const int right = x == width - 1 ? 0 : x + 1;
    __global const uchar *above = cells + (size_t)((y + height - 1) % height) * width;
    __global const uchar *here = cells + (size_t)y * width;
    __global const uchar *below = cells + (size_t)((y + 1) % height) * width;
    const int neighbours = above[left] + above[x] + above[right] + here[left] + here[right]
                           + below[left] + below[x] + below[right];
    next[(size_t)y * width + x] = neighbours == 3 || (neighbours == 2 && here[x] != 0);
}
