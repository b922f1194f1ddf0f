// Integral images of the tiles of an image, the first pass of one of the whole: sums of all pixels
// above and to the left, by doubling reaches along x, then along y.
__kernel __attribute__((reqd_work_group_size(TILE_X, TILE_Y, 1)))
void integral_tiles(__global const uchar *restrict image, __global uint *restrict sums)
{
    __local uint tile[TILE_Y][TILE_X];
    const int x = get_local_id(0);
    const int y = get_local_id(1);
    const size_t place = get_global_id(1) * get_global_size(0) + get_global_id(0);
    uint sum = image[place];
    tile[y][x] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int reach = 1; reach < TILE_X; reach *= 2) {
        sum += x >= reach ? tile[y][x - reach] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        tile[y][x] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int reach = 1; reach < TILE_Y; reach *= 2) {
        sum += y >= reach ? tile[y - reach][x] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        tile[y][x] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sums[place] = sum;
}
