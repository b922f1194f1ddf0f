// Smoke carried by a wind, of first order: along each axis the difference to the neighbour that the
// wind comes from. Nothing comes in from outside: there the cell itself is taken.
__kernel void upwind(__global const float *restrict smoke, __global const float *restrict wind_x,
                     __global const float *restrict wind_y, __global const float *restrict wind_z,
                     __global float *restrict next)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    const int nx = get_global_size(0);
    const int ny = get_global_size(1);
    const int nz = get_global_size(2);
    const size_t layer = (size_t)nx * ny;
    const size_t place = z * layer + y * nx + x;
    const float here = smoke[place];
    const float u = wind_x[place];
    const float v = wind_y[place];
    const float w = wind_z[place];
    const int from_x = u > 0.0f ? max(x - 1, 0) : min(x + 1, nx - 1);
    const int from_y = v > 0.0f ? max(y - 1, 0) : min(y + 1, ny - 1);
    const int from_z = w > 0.0f ? max(z - 1, 0) : min(z + 1, nz - 1);
    const float along_x = fabs(u) * (smoke[z * layer + y * nx + from_x] - here);
    const float along_y = fabs(v) * (smoke[z * layer + from_y * nx + x] - here);
    const float along_z = fabs(w) * (smoke[from_z * layer + y * nx + x] - here);
    next[place] = here + along_x + along_y + along_z;
}
