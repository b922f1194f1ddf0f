// y = alpha * A * x + beta * z for a column-major matrix, and the same with its transpose.

// A row a work-item: neighbours load neighbouring values of a column. The work-group loads as many
// values of x at a time as it has work-items.
__kernel void gemv_n(__global const float *restrict a, __global const float *restrict x,
                     __global const float *restrict z, __global float *restrict y, const int rows,
                     const int columns, const float alpha, const float beta, __local float *held)
{
    const int row = get_global_id(0);
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    float sum = 0.0f;
    for (int begin = 0; begin < columns; begin += lanes) {
        held[lane] = x[begin + lane];
        barrier(CLK_LOCAL_MEM_FENCE);
        __global const float *values = a + (size_t)begin * rows + row;
        for (int k = 0; k < lanes; ++k) {
            sum += values[(size_t)k * rows] * held[k];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    y[row] = alpha * sum + beta * z[row];
}

// A column a work-group; `vectors` is a quarter of the column's length.
__kernel void gemv_t(__global const float4 *restrict a, __global const float4 *restrict x,
                     __global const float *restrict z, __global float *restrict y,
                     const int vectors, const float alpha, const float beta,
                     __local float *shares)
{
    const int column = get_group_id(0);
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    __global const float4 *values = a + (size_t)column * vectors;
    float sum = 0.0f;
    for (int k = lane; k < vectors; k += lanes) {
        sum += dot(values[k], x[k]);
    }
    shares[lane] = sum;
    for (int reach = lanes / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) {
            shares[lane] += shares[lane + reach];
        }
    }
    if (lane == 0) {
        y[column] = alpha * shares[0] + beta * z[column];
    }
}
