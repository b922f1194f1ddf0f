// Adds the bias and applies GELU by its approximation with the hyperbolic tangent. Dimension 0
// counts vectors of a row.
__kernel void gelu(__global const float4 *restrict sums, __global const float4 *restrict bias,
                   __global float4 *restrict output)
{
    const size_t column = get_global_id(0);
    const size_t place = get_global_id(1) * get_global_size(0) + column;
    const float4 x = sums[place] + bias[column];
    const float4 inner = 0.7978845608f * (x + 0.044715f * x * x * x);
    output[place] = 0.5f * x * (1.0f + tanh(inner));
}
