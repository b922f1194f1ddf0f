// Normalises each channel by the statistics of training, adds the residual branch, cuts off below
// 0. Dimension 1 counts planes: images times channels.
__kernel void batch_norm(__global const float4 *restrict input,
                         __global const float4 *restrict residual,
                         __constant float *mean, __constant float *variance,
                         __constant float *gain, __constant float *shift,
                         __global float4 *restrict output, const int channels)
{
    const size_t plane = get_global_id(1);
    const int channel = plane % channels;
    const float scale = gain[channel] * rsqrt(variance[channel] + 1e-5f);
    const float offset = shift[channel] - mean[channel] * scale;
    const size_t place = plane * get_global_size(0) + get_global_id(0);
    output[place] = fmax(input[place] * scale + offset + residual[place], 0.0f);
}
