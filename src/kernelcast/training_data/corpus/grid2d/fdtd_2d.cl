// Half a step of Maxwell's equations in the plane (transverse magnetic, Yee's grid): the electric
// field goes on by the curl of the magnetic one. A byte names each cell's material, which has a
// factor for what stays (x) and one for what the curl adds (y). The first row and column are fixed.
__kernel void fdtd_2d(__global float *restrict electric, __global const float *restrict magnetic_x,
                      __global const float *restrict magnetic_y,
                      __global const uchar *restrict materials, __constant float2 *factors,
                      const int width)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x > 0 && y > 0) {
        const size_t place = (size_t)y * width + x;
        const float curl = magnetic_y[place] - magnetic_y[place - 1] - magnetic_x[place]
                           + magnetic_x[place - width];
        const float2 factor = factors[materials[place]];
        electric[place] = factor.x * electric[place] + factor.y * curl;
    }
}
