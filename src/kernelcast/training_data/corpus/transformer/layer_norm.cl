// Normalises rows, one a work-group: the mean first, then the variance around it.
inline float add_up(__local float *shares, const float share)
{
    const int lane = get_local_id(0);
    shares[lane] = share;
    for (int reach = get_local_size(0) / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) {
            shares[lane] += shares[lane + reach];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float sum = shares[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return sum;
}

__kernel void layer_norm(__global const float *restrict input, __global const float *restrict gain,
                         __global const float *restrict shift, __global float *restrict output,
                         const int width, __local float *shares)
{
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const size_t row = (size_t)get_group_id(0) * width;
    float share = 0.0f;
    for (int i = lane; i < width; i += lanes) {
        share += input[row + i];
    }
    const float mean = add_up(shares, share) / width;
    share = 0.0f;
    for (int i = lane; i < width; i += lanes) {
        const float deviation = input[row + i] - mean;
        share += deviation * deviation;
    }
    const float scale = rsqrt(add_up(shares, share) / width + 1e-5f);
    for (int i = lane; i < width; i += lanes) {
        output[row + i] = (input[row + i] - mean) * scale * gain[i] + shift[i];
    }
}
