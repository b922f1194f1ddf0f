// The kick of a gravitational n-body step: every body feels every other one. A work-group stages
// GROUP bodies at a time in local memory; .w holds the mass.

inline float3 pull(const float4 here, const float4 there, const float softening)
{
    const float3 d = there.xyz - here.xyz;
    const float inverse = rsqrt(dot(d, d) + softening);
    return d * (there.w * inverse * inverse * inverse);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void kick(__global const float4 *restrict position,
          __global const float4 *restrict velocity,
          __global float4 *restrict kicked,
          const int bodies,
          const float softening,
          const float step_s)
{
    __local float4 staged[GROUP];

    const int i = get_global_id(0);
    const int lane = get_local_id(0);
    const float4 here = position[i];

    float3 acceleration = (float3)(0.0f);
    for (int start = 0; start < bodies; start += GROUP) {
        staged[lane] = position[start + lane];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < GROUP; ++j) {
            acceleration += pull(here, staged[j], softening);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float4 old = velocity[i];
    kicked[i] = (float4)(old.xyz + step_s * acceleration, old.w);
}
