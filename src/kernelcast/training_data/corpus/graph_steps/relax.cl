// A round of shortest paths: every vertex that has been reached offers its neighbours a way through
// itself. Distances of the round before are read, so that a repeated launch has the same work.
__kernel void relax(__global const int *restrict edge_begin, __global const int *restrict to,
                    __global const uchar *restrict lengths, __global const uint *restrict distances,
                    volatile __global uint *new_distances)
{
    const int vertex = get_global_id(0);
    const uint distance = distances[vertex];
    if (distance == UINT_MAX) {
        return;
    }
    const int end = edge_begin[vertex + 1];
    for (int edge = edge_begin[vertex]; edge < end; ++edge) {
        atomic_min(new_distances + to[edge], distance + lengths[edge]);
    }
}
