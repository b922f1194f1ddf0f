// y = A * x for a matrix in compressed rows. BUNDLE work-items share a row; a work-group has as
// many rows as bundles.
#define BUNDLE 32

__kernel void spmv_csr_vector(__global const float *restrict value,
                              __global const float *restrict x,
                              __global const int *restrict column,
                              __global const int *restrict row_begin,
                              const int rows,
                              __global float *restrict y,
                              __local float *shares)
{
    const int slot = get_local_id(0);
    const int lane = slot % BUNDLE;
    const int row = get_global_id(0) / BUNDLE;

    float sum = 0.0f;
    if (row < rows) {
        const int end = row_begin[row + 1];
        for (int k = row_begin[row] + lane; k < end; k += BUNDLE) {
            sum += value[k] * x[column[k]];
        }
    }
    shares[slot] = sum;
    for (int reach = BUNDLE / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) {
            shares[slot] += shares[slot + reach];
        }
    }
    if (lane == 0 && row < rows) {
        y[row] = shares[slot];
    }
}
