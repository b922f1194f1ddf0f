// Half a step of Maxwell's equations on Yee's grid: the three components of the electric field go on
// by the curl of the magnetic one. The first layer in each direction is fixed.
__kernel void fdtd_3d(__global float *restrict ex, __global float *restrict ey,
                      __global float *restrict ez, __global const float *restrict hx,
                      __global const float *restrict hy, __global const float *restrict hz,
                      const float stays, const float adds)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    const size_t row = get_global_size(0);
    const size_t layer = row * get_global_size(1);
    const size_t place = z * layer + y * row + x;
    if (x == 0 || y == 0 || z == 0) {
        return;
    }
    ex[place] = stays * ex[place]
                + adds * (hz[place] - hz[place - row] - hy[place] + hy[place - layer]);
    ey[place] = stays * ey[place]
                + adds * (hx[place] - hx[place - layer] - hz[place] + hz[place - 1]);
    ez[place] = stays * ez[place]
                + adds * (hy[place] - hy[place - 1] - hx[place] + hx[place - row]);
}
