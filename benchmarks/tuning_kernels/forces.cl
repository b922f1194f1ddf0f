/* Forces between all pairs of bodies; BODIES per work-item, positions may pass through local memory. */
__kernel void forces(__global const float4 *body, __global float4 *force, int n)
{
    const int first = get_group_id(0) * (LX * BODIES) + get_local_id(0);
    float4 own[BODIES], sum[BODIES];
    for (int b = 0; b < BODIES; b++) {
        own[b] = body[first + b * LX];
        sum[b] = (float4)(0.0f);
    }
#if STAGED
    __local float4 tile[LX];
    for (int start = 0; start < n; start += LX) {
        tile[get_local_id(0)] = body[start + get_local_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll UNROLL
        for (int k = 0; k < LX; k++) {
            const float4 other = tile[k];
#else
    {
        #pragma unroll UNROLL
        for (int k = 0; k < n; k++) {
            const float4 other = body[k];
#endif
            for (int b = 0; b < BODIES; b++) {
                const float4 d = other - own[b];
                const float s = d.x * d.x + d.y * d.y + d.z * d.z + 0.01f;
                const float i = native_rsqrt(s);
                sum[b] += d * (other.w * i * i * i);
            }
        }
#if STAGED
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }
    for (int b = 0; b < BODIES; b++)
        force[first + b * LX] = sum[b];
}
