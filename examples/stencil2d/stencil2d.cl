// One Jacobi step of a damped 5-point stencil. The index space starts at (1, 1), its global
// offset, and covers the interior only: there is no border to guard.
__kernel void stencil2d(__global const float *restrict grid,
                        __global float *restrict next,
                        const float centre_weight,
                        const float side_weight,
                        const int pitch)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int i = y * pitch + x;
    const float sides = grid[i - 1] + grid[i + 1] + grid[i - pitch] + grid[i + pitch];
    next[i] = centre_weight * grid[i] + side_weight * sides;
}
