// Histograms of the tiles of an image, as for adaptive contrast: a work-group counts a tile four times
// as wide and high as it is itself.
#define CLASSES 256
#define REPEAT 4

__kernel __attribute__((reqd_work_group_size(LANES_X, LANES_Y, 1)))
void tile_histogram(__global const uchar *restrict image, __global uint *restrict histograms)
{
    __local uint counts[CLASSES];
    const int lane = get_local_id(1) * LANES_X + get_local_id(0);
    const size_t width = get_global_size(0) * REPEAT;
    const size_t left = get_group_id(0) * LANES_X * REPEAT + get_local_id(0);
    const size_t top = get_group_id(1) * LANES_Y * REPEAT + get_local_id(1);
    for (int i = lane; i < CLASSES; i += LANES_X * LANES_Y) {
        counts[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int row = 0; row < REPEAT; ++row) {
        for (int column = 0; column < REPEAT; ++column) {
            const size_t place = (top + row * LANES_Y) * width + left + column * LANES_X;
            atomic_inc(&counts[image[place]]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const size_t tile = get_group_id(1) * get_num_groups(0) + get_group_id(0);
    for (int i = lane; i < CLASSES; i += LANES_X * LANES_Y) {
        histograms[tile * CLASSES + i] = counts[i];
    }
}
