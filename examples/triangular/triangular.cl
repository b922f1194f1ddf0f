// y = L * x where L is lower triangular and constant along its diagonals: y[i] is the sum of
// w[i - j] * x[j] over j <= i. Row i costs i + 1 operations, so late work-groups cost the most.
__kernel void triangular(__global const float *restrict w,
                         __global const float *restrict x,
                         __global float *restrict y)
{
    const int row = get_global_id(0);
    float sum = 0.0f;
    for (int j = 0; j <= row; ++j) {
        sum += w[row - j] * x[j];
    }
    y[row] = sum;
}
