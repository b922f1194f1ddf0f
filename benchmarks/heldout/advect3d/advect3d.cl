// Carry a density field along a velocity field: look up where each cell's content came from.

__kernel void advect3d(__global const float *density, __global const float *u,
                       __global const float *v, __global const float *w,
                       __global float *advected, const float time_step)
{
    const int nx = get_global_size(0);
    const int ny = get_global_size(1);
    const int nz = get_global_size(2);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    const int at = (z * ny + y) * nx + x;

    const float px = clamp(x - time_step * u[at], 0.0f, nx - 1.0f);
    const float py = clamp(y - time_step * v[at], 0.0f, ny - 1.0f);
    const float pz = clamp(z - time_step * w[at], 0.0f, nz - 1.0f);
    const int ix = min((int)px, nx - 2);
    const int iy = min((int)py, ny - 2);
    const int iz = min((int)pz, nz - 2);
    const float fx = px - ix;
    const float fy = py - iy;
    const float fz = pz - iz;

    __global const float *corner = density + (iz * ny + iy) * nx + ix;
    const int row = nx;
    const int plane = nx * ny;
    const float c00 = mix(corner[0], corner[1], fx);
    const float c10 = mix(corner[row], corner[row + 1], fx);
    const float c01 = mix(corner[plane], corner[plane + 1], fx);
    const float c11 = mix(corner[plane + row], corner[plane + row + 1], fx);
    advected[at] = mix(mix(c00, c10, fy), mix(c01, c11, fy), fz);
}
