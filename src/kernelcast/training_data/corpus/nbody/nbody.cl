// One step of bodies that attract each other. Every work-item has a body; the work-group loads as
// many of the others at a time as it has work-items. The fourth component of a position is mass.
inline float4 add_pull(float4 acceleration, const float4 other, const float4 mine,
                       const float softening)
{
    const float4 away = (float4)(other.xyz - mine.xyz, 0.0f);
    const float square = away.x * away.x + away.y * away.y + away.z * away.z + softening;
    const float inverse = rsqrt(square);
    return acceleration + away * (other.w * inverse * inverse * inverse);
}

__kernel void nbody(__global float4 *restrict new_position,
                    __global float4 *restrict new_velocity,
                    __global const float4 *restrict old_position,
                    __global const float4 *restrict old_velocity,
                    const float time_step,
                    const float damping,
                    const float softening,
                    const int bodies,
                    __local float4 *shared)
{
    const int body = get_global_id(0);
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const float4 position = old_position[body];

    float4 acceleration = (float4)(0.0f);
    for (int begin = 0; begin < bodies; begin += lanes) {
        shared[lane] = old_position[begin + lane];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < lanes; ++k) {
            acceleration = add_pull(acceleration, shared[k], position, softening);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float4 velocity = (old_velocity[body] + acceleration * time_step) * damping;
    new_position[body] = position + velocity * time_step;
    new_velocity[body] = velocity;
}
