// C = A * B, row-major, an element of C per work-item, straight from global memory.
__kernel void gemm_naive(__global const float *restrict a, __global const float *restrict b,
                         __global float *restrict c, const int n, const int k)
{
    const int column = get_global_id(0);
    const int row = get_global_id(1);
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) {
        sum += a[(size_t)row * k + i] * b[(size_t)i * n + column];
    }
    c[(size_t)row * n + column] = sum;
}
