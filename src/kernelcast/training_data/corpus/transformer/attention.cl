// Causal attention with a running softmax: a work-group has a block of queries, one a work-item,
// and goes over the keys and values up to its last query, a tile at a time in local memory.
#define DEPTH 8 // vectors of four
#define TILE 32

__kernel void attention(__global const float4 *restrict queries,
                        __global const float4 *restrict keys,
                        __global const float4 *restrict values, __global float4 *restrict output,
                        const float scale)
{
    __local float4 key_tile[TILE * DEPTH];
    __local float4 value_tile[TILE * DEPTH];
    const int query = get_global_id(0);
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const size_t head = (size_t)get_global_id(1) * get_global_size(0) * DEPTH;
    const int block_end = (get_group_id(0) + 1) * lanes;

    float4 mine[DEPTH];
    float4 mixed[DEPTH];
    for (int d = 0; d < DEPTH; ++d) {
        mine[d] = queries[head + query * DEPTH + d] * scale;
        mixed[d] = (float4)(0.0f);
    }
    float greatest = -INFINITY;
    float total = 0.0f;
    for (int begin = 0; begin < block_end; begin += TILE) {
        for (int i = lane; i < TILE * DEPTH; i += lanes) {
            key_tile[i] = keys[head + begin * DEPTH + i];
            value_tile[i] = values[head + begin * DEPTH + i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int count = min(TILE, query - begin + 1);
        for (int k = 0; k < count; ++k) {
            float score = 0.0f;
            for (int d = 0; d < DEPTH; ++d) {
                score += dot(mine[d], key_tile[k * DEPTH + d]);
            }
            const float now_greatest = fmax(greatest, score);
            const float fading = exp(greatest - now_greatest);
            const float weight = exp(score - now_greatest);
            greatest = now_greatest;
            total = total * fading + weight;
            for (int d = 0; d < DEPTH; ++d) {
                mixed[d] = mixed[d] * fading + value_tile[k * DEPTH + d] * weight;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int d = 0; d < DEPTH; ++d) {
        output[head + query * DEPTH + d] = mixed[d] / total;
    }
}
