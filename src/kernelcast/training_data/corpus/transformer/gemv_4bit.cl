// y = W x with weights of 4 bits, eight in a word, the lowest first; 32 of them share a scale of 16
// bits, and 8 stands for zero. A row a work-group.
#define WORDS_PER_SCALE 4

inline float dot_word(const uint word, const float4 low, const float4 high)
{
    const uint upper = word >> 16;
    const uint4 first = (uint4)(word, word >> 4, word >> 8, word >> 12) & 15u;
    const uint4 second = (uint4)(upper, upper >> 4, upper >> 8, upper >> 12) & 15u;
    return dot(convert_float4(first) - 8.0f, low) + dot(convert_float4(second) - 8.0f, high);
}

__kernel void gemv_4bit(__global const uint *restrict weights, __global const half *restrict scales,
                        __global const float4 *restrict x, __global float *restrict y,
                        const int words_per_row, __local float *shares)
{
    const int lane = get_local_id(0);
    const size_t row = get_group_id(0);
    float sum = 0.0f;
    for (int i = lane; i < words_per_row; i += get_local_size(0)) {
        const size_t word = row * words_per_row + i;
        const float scale = vload_half(word / WORDS_PER_SCALE, scales);
        sum += scale * dot_word(weights[word], x[2 * i], x[2 * i + 1]);
    }
    shares[lane] = sum;
    for (int reach = get_local_size(0) / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) {
            shares[lane] += shares[lane + reach];
        }
    }
    if (lane == 0) {
        y[row] = shares[0];
    }
}
