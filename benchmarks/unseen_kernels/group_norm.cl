/* Group normalisation and SiLU: a group of channels of an image per work-group. */
#define N 256
void add_up(__local float2 *sums, float2 mine)
{
    const uint l = get_local_id(0);
    sums[l] = mine;
    for (uint half_n = N / 2; half_n > 0; half_n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < half_n)
            sums[l] += sums[l + half_n];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel void group_norm(__global const float *x, __global float *y, __global const float *gamma,
                         __global const float *beta, const uint channels, const uint pixels)
{
    __local float2 sums[N];
    const uint count = channels * pixels, first = (uint)get_group_id(0) * count;
    float2 mine = 0.0f;
    for (uint i = get_local_id(0); i < count; i += N)
        mine += (float2)(x[first + i], x[first + i] * x[first + i]);
    add_up(sums, mine);
    const float mean = sums[0].x / count, scale = rsqrt(sums[0].y / count - mean * mean + 1e-5f);
    for (uint i = get_local_id(0); i < count; i += N) {
        const uint c = i / pixels;
        const float v = (x[first + i] - mean) * scale * gamma[c] + beta[c];
        y[first + i] = v / (1.0f + exp(-v));
    }
}
