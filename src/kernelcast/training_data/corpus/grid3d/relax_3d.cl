// Half a sweep of Gauss and Seidel for the pressure of a flow: cells of one colour of the chessboard.
// Solid cells (0) have no pressure; towards them the cell's own counts. The faces of the box are fixed.
__kernel void relax_3d(__global float *restrict pressure, __global const float *restrict divergence,
                       __global const uchar *restrict open, const int nx, const int colour)
{
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    const int x = 2 * get_global_id(0) + ((y + z + colour) & 1);
    const int ny = get_global_size(1);
    const int nz = get_global_size(2);
    const size_t layer = (size_t)nx * ny;
    const size_t place = z * layer + y * nx + x;
    if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1 || !open[place]) {
        return;
    }
    const float here = pressure[place];
    float sum = -divergence[place];
    sum += open[place - 1] ? pressure[place - 1] : here;
    sum += open[place + 1] ? pressure[place + 1] : here;
    sum += open[place - nx] ? pressure[place - nx] : here;
    sum += open[place + nx] ? pressure[place + nx] : here;
    sum += open[place - layer] ? pressure[place - layer] : here;
    sum += open[place + layer] ? pressure[place + layer] : here;
    pressure[place] = sum / 6.0f;
}
