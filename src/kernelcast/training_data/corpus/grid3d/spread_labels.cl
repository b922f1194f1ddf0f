// A round of finding connected parts of a volume: a cell that is not empty takes the least label
// among itself and its 26 neighbours that are not empty either.
__kernel void spread_labels(__global const int *restrict labels, __global int *restrict next)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    const int nx = get_global_size(0);
    const int ny = get_global_size(1);
    const int nz = get_global_size(2);
    const size_t place = ((size_t)z * ny + y) * nx + x;
    int least = labels[place];
    if (least >= 0) {
        for (int from_z = max(z - 1, 0); from_z <= min(z + 1, nz - 1); ++from_z) {
            for (int from_y = max(y - 1, 0); from_y <= min(y + 1, ny - 1); ++from_y) {
                for (int from_x = max(x - 1, 0); from_x <= min(x + 1, nx - 1); ++from_x) {
                    const int other = labels[((size_t)from_z * ny + from_y) * nx + from_x];
                    if (other >= 0) {
                        least = min(least, other);
                    }
                }
            }
        }
    }
    next[place] = least;
}
