// A sparse matrix in compressed rows times a dense one of 32 columns: 32 work-items have a row, so
// that they load the same entry and neighbouring values of the dense matrix.
#define COLUMNS 32

__kernel void spmm(__global const int *restrict row_begin, __global const int *restrict columns,
                   __global const float *restrict entries, __global const float *restrict dense,
                   __global float *restrict product)
{
    const size_t row = get_global_id(0) / COLUMNS;
    const size_t column = get_global_id(0) % COLUMNS;
    const int end = row_begin[row + 1];
    float sum = 0.0f;
    for (int i = row_begin[row]; i < end; ++i) {
        sum += entries[i] * dense[columns[i] * COLUMNS + column];
    }
    product[row * COLUMNS + column] = sum;
}
