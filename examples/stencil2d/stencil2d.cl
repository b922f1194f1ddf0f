// One explicit step of diffusion that stops at edges (Perona and Malik): what flows from a
// neighbour falls with the square of the difference. The index space starts at (1, 1), its global
// offset, and covers the interior only: there is no border to guard.
float flow(const float difference, const float sharpness)
{
    const float steepness = difference * difference * sharpness;
    return difference / (1.0f + steepness) * native_exp(-0.5f * steepness)
        + 0.5f * difference * rsqrt(1.0f + steepness);
}

__kernel void stencil2d(__global const float *restrict image,
                        __global float *restrict smoothed,
                        const float step,
                        const float sharpness,
                        const int pitch)
{
    const int i = get_global_id(1) * pitch + get_global_id(0);
    const float centre = image[i];
    const float inflow = flow(image[i - 1] - centre, sharpness)
        + flow(image[i + 1] - centre, sharpness)
        + flow(image[i - pitch] - centre, sharpness)
        + flow(image[i + pitch] - centre, sharpness);
    smoothed[i] = centre + step * inflow;
}
