// Colours of a raw image behind Bayer's pattern (red and green in even rows, green and blue in odd
// ones): what a pixel lacks is the mean of its neighbours that have it. Edges are mirrored, so that
// the pattern goes on.
__kernel void demosaic(__global const uchar *restrict raw, __global uchar4 *restrict image)
{
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int left = abs(x - 1);
    const int right = x == width - 1 ? width - 2 : x + 1;
    __global const uchar *above = raw + (size_t)abs(y - 1) * width;
    __global const uchar *here = raw + (size_t)y * width;
    __global const uchar *below = raw + (size_t)(y == height - 1 ? height - 2 : y + 1) * width;

    const int mine = here[x];
    const int beside = here[left] + here[right];
    const int upright = above[x] + below[x];
    const int diagonal = above[left] + above[right] + below[left] + below[right];
    const int cross = (beside + upright + 2) >> 2;
    const int corners = (diagonal + 2) >> 2;
    const int across = (beside + 1) >> 1;
    const int down = (upright + 1) >> 1;
    int4 colour;
    if ((y & 1) == 0) {
        colour = (x & 1) == 0 ? (int4)(mine, cross, corners, 255) : (int4)(across, mine, down, 255);
    } else {
        colour = (x & 1) == 0 ? (int4)(down, mine, across, 255) : (int4)(corners, cross, mine, 255);
    }
    image[(size_t)y * width + x] = convert_uchar4(colour);
}
