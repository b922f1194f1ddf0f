// One level of a breadth-first search. BUNDLE work-items look after as many vertices; they go
// through them one after the other, and along the edges of those on the current level together.
#define BUNDLE 32
#define CHUNK 32

__kernel void bfs(__global uint *restrict levels,
                  __global const uint *restrict edge_begin,
                  __global const uint *restrict target,
                  __global uint *restrict is_further,
                  const uint vertices,
                  const uint current)
{
    const uint lane = get_global_id(0) % BUNDLE;
    const uint begin = get_global_id(0) / BUNDLE * CHUNK;
    const uint end = min(begin + CHUNK, vertices);
    for (uint vertex = begin; vertex < end; ++vertex) {
        if (levels[vertex] != current) {
            continue;
        }
        const uint last = edge_begin[vertex + 1];
        for (uint edge = edge_begin[vertex] + lane; edge < last; edge += BUNDLE) {
            const uint other = target[edge];
            // Whoever comes first or last, all write the same.
            if (levels[other] > current) {
                levels[other] = current + 1;
                *is_further = 1;
            }
        }
    }
}
