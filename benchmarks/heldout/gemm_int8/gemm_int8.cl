// Quantised matrix product C = requantise(A * B^T): both operands row-major over K, packed by four.

__kernel void gemm_int8(__global const char4 *a, __global const char4 *b,
                        __global const int *bias, __global char *c, const int columns,
                        const int packed_k, const int multiplier, const int shift)
{
    const int column = get_global_id(0);
    const int row = get_global_id(1);

    int sum = bias[column];
    for (int k = 0; k < packed_k; ++k) {
        const char4 x = a[row * packed_k + k];
        const char4 y = b[column * packed_k + k];
        sum += (int)x.s0 * y.s0 + (int)x.s1 * y.s1 + (int)x.s2 * y.s2 + (int)x.s3 * y.s3;
    }
    const long scaled = ((long)sum * multiplier + (1L << (shift - 1))) >> shift;
    c[row * columns + column] = (char)clamp(scaled, -128L, 127L);
}
