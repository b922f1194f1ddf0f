// y = A * x for a sparse matrix in compressed rows, one row per work-item. Long rows come in
// bunches, so some work-groups take many times as long as others.
__kernel void spmv_csr(__global const int *restrict row_pointer,
                       __global const int *restrict column,
                       __global const float *restrict value,
                       __global const float *restrict x,
                       __global float *restrict y,
                       const int rows)
{
    const int row = get_global_id(0);
    if (row >= rows) {
        return;
    }
    const int end = row_pointer[row + 1];
    float sum = 0.0f;
    for (int k = row_pointer[row]; k < end; ++k) {
        sum += value[k] * x[column[k]];
    }
    y[row] = sum;
}
