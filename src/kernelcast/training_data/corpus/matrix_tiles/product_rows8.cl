// C = A * B: a work-item makes eight elements of a column, so that an element of B, loaded once, is
// used eight times. A's elements are the same for a whole row of work-items.
#define ROWS 8

__kernel void product_rows8(__global const float *restrict a, __global const float *restrict b,
                            __global float *restrict c, const int k)
{
    const size_t n = get_global_size(0);
    const size_t column = get_global_id(0);
    const size_t first = get_global_id(1) * ROWS;
    __global const float *rows = a + first * k;
    float sums[ROWS] = {0.0f};
    for (int i = 0; i < k; ++i) {
        const float value = b[i * n + column];
        #pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            sums[row] += rows[row * k + i] * value;
        }
    }
    for (int row = 0; row < ROWS; ++row) {
        c[(first + row) * n + column] = sums[row];
    }
}
