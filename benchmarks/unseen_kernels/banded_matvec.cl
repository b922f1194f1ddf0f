/* A banded matrix by diagonals times a vector, in double precision; offsets of diagonals by formula. */
__kernel void banded(__global const double *diagonals, __global const double *x, __global double *y,
                     const long n, const int half_width)
{
    const long i = get_global_id(0);
    if (i >= n)
        return;
    double sum = 0.0;
    for (int d = -half_width; d <= half_width; ++d)
        if (i + d >= 0 && i + d < n)
            sum += diagonals[(d + half_width) * n + i] * x[i + d];
    y[i] = sum;
}
