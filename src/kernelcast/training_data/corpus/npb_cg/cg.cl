// The two products with the sparse matrix in the conjugate gradient method: q = A p, with a row a
// work-group, and the residual r = A z with the squared norm of x - r, with a row a work-item.
#ifdef USE_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifndef REAL
#define REAL float
#endif

// Adds up what the work-items hold; all of them call it.
inline void reduce(__local REAL *sums, const int lane, const int lanes)
{
    for (int reach = lanes / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) {
            sums[lane] += sums[lane + reach];
        }
    }
}

__kernel void conj_grad_2(__global const int *restrict row_begin,
                          __global const int *restrict column,
                          __global const REAL *restrict value,
                          __global const REAL *restrict p,
                          __global REAL *restrict q,
                          __local REAL *sums)
{
    const int row = get_group_id(0);
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const int end = row_begin[row + 1];
    REAL sum = 0;
    for (int k = row_begin[row] + lane; k < end; k += lanes) {
        sum += value[k] * p[column[k]];
    }
    sums[lane] = sum;
    reduce(sums, lane, lanes);
    if (lane == 0) {
        q[row] = sums[0];
    }
}

__kernel void conj_grad_6(__global const int *restrict row_begin,
                          __global const int *restrict column,
                          __global const REAL *restrict value,
                          __global const REAL *restrict z,
                          __global const REAL *restrict x,
                          __global REAL *restrict r,
                          __global REAL *restrict norms,
                          __local REAL *sums)
{
    const int row = get_global_id(0);
    const int lane = get_local_id(0);
    const int end = row_begin[row + 1];
    REAL sum = 0;
    for (int k = row_begin[row]; k < end; ++k) {
        sum += value[k] * z[column[k]];
    }
    r[row] = sum;
    const REAL difference = x[row] - sum;
    sums[lane] = difference * difference;
    reduce(sums, lane, get_local_size(0));
    if (lane == 0) {
        norms[get_group_id(0)] = sums[0];
    }
}
