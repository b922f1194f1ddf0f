// A Chebyshev series in double precision, summed from its last term by Clenshaw's recurrence.
// A work-item evaluates it at eight points at once.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

__kernel void chebyshev(__global const double8 *restrict x,
                        __constant double *coefficient,
                        __global double8 *restrict y,
                        const int terms,
                        const double scale)
{
    const size_t i = get_global_id(0);
    const double8 twice_x = 2.0 * x[i];
    double8 newer = (double8)(0.0);
    double8 older = (double8)(0.0);
    for (int k = terms - 1; k > 0; --k) {
        const double8 current = fma(twice_x, newer, coefficient[k] - older);
        older = newer;
        newer = current;
    }
    y[i] = scale * (coefficient[0] + 0.5 * twice_x * newer - older);
}
