/* Attention of one new token: a head per work-group, keys and values of half precision. */
#define D 64
#define N 128
__kernel __attribute__((reqd_work_group_size(N, 1, 1)))
void attend(__global const float *query, __global const half *keys, __global const half *values,
            __global float *out, int tokens)
{
    __local float q[D], score[N], part[N];
    const int head = get_group_id(0), l = get_local_id(0);
    const size_t base = (size_t)head * tokens * D;
    float greatest = -INFINITY, total = 0.0f, sum = 0.0f;
    if (l < D)
        q[l] = query[head * D + l] * rsqrt((float)D);
    for (int first = 0; first < tokens; first += N) {
        barrier(CLK_LOCAL_MEM_FENCE);
        float dot_product = 0.0f;
        for (int d = 0; d < D; d += 4) {
            const float4 k = vload_half4((base + (size_t)(first + l) * D + d) / 4, keys);
            dot_product += dot(k, vload4(d / 4, q));
        }
        score[l] = dot_product;
        barrier(CLK_LOCAL_MEM_FENCE);
        float before = greatest;
        for (int j = 0; j < N; j++)
            greatest = fmax(greatest, score[j]);
        const float scale = exp(before - greatest);
        total *= scale;
        sum *= scale;
        for (int j = 0; j < N; j++) {
            const float w = exp(score[j] - greatest);
            total += w;
            if ((j & 1) == l / D)
                sum += w * vload_half(base + (size_t)(first + j) * D + l % D, values);
        }
    }
    part[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l < D)
        out[head * D + l] = (part[l] + part[l + D]) / total;
}
