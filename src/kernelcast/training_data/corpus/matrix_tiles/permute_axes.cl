// Turns an array ordered [z][y][x] into one ordered [y][x][z], as between the passes of a transform.
__kernel void permute_axes(__global const float *restrict given, __global float *restrict turned)
{
    const size_t x = get_global_id(0);
    const size_t y = get_global_id(1);
    const size_t z = get_global_id(2);
    const size_t nx = get_global_size(0);
    const size_t ny = get_global_size(1);
    const size_t nz = get_global_size(2);
    turned[(y * nx + x) * nz + z] = given[(z * ny + y) * nx + x];
}
