// Looks up the vectors of words and adds those of their positions. Dimension 0 counts vectors of
// four, dimension 1 words of the text.
__kernel void embedding(__global const int *restrict words, __global const float4 *restrict table,
                        __global const float4 *restrict positions, __global float4 *restrict output,
                        const int context)
{
    const size_t width = get_global_size(0);
    const size_t i = get_global_id(0);
    const size_t token = get_global_id(1);
    const size_t word = words[token];
    output[token * width + i] = table[word * width + i] + positions[token % context * width + i];
}
