// A sweep over the inner points of a grid: each becomes the mean of its neighbours plus the right
// side, of which the damped part is taken.
#ifdef USE_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifndef REAL
#define REAL float
#endif

__kernel void sweep(__global const REAL *restrict old,
                    __global const REAL *restrict right,
                    __global REAL *restrict new,
                    const int width,
                    const int height,
                    const REAL damping)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x == 0 || y == 0 || x >= width - 1 || y >= height - 1) {
        return;
    }
    const size_t i = (size_t)y * width + x;
    const REAL around = old[i - width] + old[i - 1] + old[i + 1] + old[i + width];
    new[i] = old[i] + damping * ((REAL)0.25 * (around + right[i]) - old[i]);
}
