// B = A + alpha * x * y^T, four columns a work-item.
__kernel void rank_one_update(__global const float4 *restrict a, __global const float *restrict x,
                              __global const float4 *restrict y, __global float4 *restrict b,
                              const float alpha)
{
    const size_t column = get_global_id(0);
    const size_t row = get_global_id(1);
    const size_t place = row * get_global_size(0) + column;
    b[place] = a[place] + alpha * x[row] * y[column];
}
