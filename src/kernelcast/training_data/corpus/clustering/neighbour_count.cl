// How many points lie within the radius of each point, the first step of density-based clustering.
// Points are sorted by the square cells of a grid, whose side is the radius; neighbours lie in
// three rows of three cells, which follow each other in memory. Coordinates are whole numbers.
__kernel void neighbour_count(__global const int2 *restrict points,
                              __global const int *restrict cell_begin,
                              __global int *restrict counts, const int cells, const int radius)
{
    const int2 point = points[get_global_id(0)];
    const int2 cell = point / radius;
    const int left = max(cell.x - 1, 0);
    const int right = min(cell.x + 1, cells - 1);
    int count = 0;
    for (int y = max(cell.y - 1, 0); y <= min(cell.y + 1, cells - 1); ++y) {
        const int end = cell_begin[y * cells + right + 1];
        for (int i = cell_begin[y * cells + left]; i < end; ++i) {
            const int2 away = points[i] - point;
            count += away.x * away.x + away.y * away.y <= radius * radius;
        }
    }
    counts[get_global_id(0)] = count;
}
