// Second half of one step of Gaussian elimination: subtract multiples of the pivot row.

__kernel void gauss_fan2(__global float *a, __global float *b,
                         __global const float *multipliers, const int n, const int pivot)
{
    const int row = get_global_id(0);
    const int column = get_global_id(1);
    if (row <= pivot || row >= n || column < pivot || column >= n)
        return;

    a[row * n + column] -= multipliers[row] * a[pivot * n + column];
    if (column == pivot)
        b[row] -= multipliers[row] * b[pivot];
}
