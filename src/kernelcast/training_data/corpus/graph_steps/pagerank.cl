// A step of PageRank: each vertex adds up what the vertices that point at it have to give, which is
// their rank by the number of vertices they point at.
__kernel void pagerank(__global const int *restrict edge_begin, __global const int *restrict from,
                       __global const float *restrict shares, __global const float *restrict weight,
                       __global float *restrict ranks, __global float *restrict new_shares,
                       const float damping, const float base)
{
    const int vertex = get_global_id(0);
    const int end = edge_begin[vertex + 1];
    float sum = 0.0f;
    for (int edge = edge_begin[vertex]; edge < end; ++edge) {
        sum += shares[from[edge]];
    }
    const float rank = base + damping * sum;
    ranks[vertex] = rank;
    new_shares[vertex] = rank * weight[vertex];
}
