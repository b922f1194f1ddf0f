/* Density of a fluid by smoothed particles: all pairs, 128 in local memory at a time. */
__kernel void sph_density(__global const float4 *particles, __global float *density, __local float4 *tile,
                          uint count, float h)
{
    uint i = get_global_id(0), l = get_local_id(0), n = get_local_size(0);
    float4 me = particles[i];
    float h2 = h * h, sum = 0;
    for (uint first = 0; first < count; first += n) {
        tile[l] = particles[first + l];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint j = 0; j < n; j++) {
            float3 d = tile[j].xyz - me.xyz;
            float q = h2 - dot(d, d);
            if (q > 0)
                sum += tile[j].w * q * q * q;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    density[i] = 315 / (64 * M_PI_F * pown(h, 9)) * sum;
}
