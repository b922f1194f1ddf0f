// Counts the triangles over each edge: vertices that both its ends point at. Edges point from the
// lesser vertex to the greater one, and lists of neighbours are sorted.
__kernel void triangles(__global const int *restrict edge_begin, __global const int *restrict to,
                        __global const int *restrict from, __global int *restrict counts,
                        const int edge_count)
{
    const int edge = get_global_id(0);
    if (edge >= edge_count) {
        return;
    }
    int i = edge_begin[from[edge]];
    int k = edge_begin[to[edge]];
    const int i_end = edge_begin[from[edge] + 1];
    const int k_end = edge_begin[to[edge] + 1];
    int count = 0;
    while (i < i_end && k < k_end) {
        const int one = to[i];
        const int other = to[k];
        count += one == other;
        i += one <= other;
        k += other <= one;
    }
    counts[edge] = count;
}
