// Sparse matrix times vector, ELLPACK storage: entry k of all rows lies together, negative pads.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void spmv_ell(__global const double *values, __global const int *columns,
                       __global const double *x, __global double *y, const int rows,
                       const int width, const double alpha, const double beta)
{
    const int row = get_global_id(0);
    if (row < rows) {
        double sum = 0.0;
        for (int k = 0; k < width; k++) {
            const int column = columns[k * rows + row];
            if (column >= 0)
                sum += values[k * rows + row] * x[column];
        }
        y[row] = alpha * sum + beta * y[row];
    }
}
