// Expand one level of many breadth-first searches over the same graph.
// A level of 0 means not reached; dimension 0 is the vertex, dimension 1 the search.

__kernel void bfs_frontier(__global const int *row_begin, __global const int *neighbours,
                           __global int *levels, __global int *reached, const int vertices,
                           const int current)
{
    const int vertex = get_global_id(0);
    const int search = get_global_id(1);
    __global int *level = levels + search * vertices;

    if (level[vertex] != current)
        return;
    const int end = row_begin[vertex + 1];
    for (int i = row_begin[vertex]; i < end; ++i) {
        const int neighbour = neighbours[i];
        if (level[neighbour] == 0 && atomic_cmpxchg(&level[neighbour], 0, current + 1) == 0)
            atomic_inc(&reached[search]);
    }
}
