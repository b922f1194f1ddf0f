/* A symmetric matrix, its lower half packed by rows, times a vector; a row per work-item. */
__kernel void symv(__global const float *packed, __global const float *x, __global float *y, uint n)
{
    uint i = get_global_id(0);
    float sum = 0.0f;
    for (uint j = 0; j <= i; j++)
        sum += packed[i * (i + 1) / 2 + j] * x[j];
    for (uint j = i + 1; j < n; j++)
        sum += packed[j * (j + 1) / 2 + i] * x[j];
    y[i] = sum;
}
