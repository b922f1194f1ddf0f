// Connected components: each edge looks for the roots of its ends in the forest of the round before
// and hooks the greater root under the lesser one.
inline uint find_root(__global const uint *parents, const uint vertex)
{
    uint root = vertex;
    while (parents[root] != root) {
        root = parents[root];
    }
    return root;
}

__kernel void hook(__global const uint2 *restrict edges, __global const uint *restrict parents,
                   volatile __global uint *hooks)
{
    const uint2 edge = edges[get_global_id(0)];
    const uint one = find_root(parents, edge.x);
    const uint other = find_root(parents, edge.y);
    if (one != other) {
        atomic_min(hooks + max(one, other), min(one, other));
    }
}
