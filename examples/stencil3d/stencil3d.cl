// One explicit step of heat flow where the conductivity grows with the temperature: a 7-point
// stencil in three dimensions. Cells on the border keep their temperature.

// Heat conduction in a plasma: the conductivity is the mean temperature of both cells to the power
// 5/2, and steep differences are limited.
inline float heat_in(const float here, const float there)
{
    const float mean = 0.5f * (here + there);
    const float difference = there - here;
    return mean * mean * sqrt(mean) * difference / (1.0f + fabs(difference) / mean);
}

__kernel void heat_step(__global const float *restrict temperature,
                        __global float *restrict next,
                        const int nx,
                        const int ny,
                        const int nz,
                        const float rate)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    if (x >= nx || y >= ny || z >= nz) {
        return;
    }
    const int layer = nx * ny;
    const int i = z * layer + y * nx + x;
    const float here = temperature[i];
    if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) {
        next[i] = here;
        return;
    }
    const float total = heat_in(here, temperature[i - 1])
                      + heat_in(here, temperature[i + 1])
                      + heat_in(here, temperature[i - nx])
                      + heat_in(here, temperature[i + nx])
                      + heat_in(here, temperature[i - layer])
                      + heat_in(here, temperature[i + layer]);
    next[i] = here + rate * total;
}
