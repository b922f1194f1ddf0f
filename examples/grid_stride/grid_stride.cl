// Damped oscillations at many moments. The index space is smaller than the data: each work-item
// strides over it by the size of the whole index space.
__kernel void oscillate(__global const float *restrict time_s,
                        __global float *restrict height,
                        const uint count,
                        const float decay_per_s,
                        const float frequency_hz)
{
    const uint stride = get_global_size(0);
    for (uint i = get_global_id(0); i < count; i += stride) {
        const float t = time_s[i];
        height[i] = exp(-decay_per_s * t) * (2.0f + cospi(2.0f * frequency_hz * t));
    }
}
