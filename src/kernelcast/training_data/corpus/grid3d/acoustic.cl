// A step of sound through rock whose speed varies, of fourth order in space: thirteen points on the
// axes. Two cells at each face are fixed.
#define FAR (-1.0f / 12.0f)
#define NEAR (4.0f / 3.0f)
#define CENTRE (-7.5f)

inline float add_pairs(__global const float *here, const size_t step)
{
    return NEAR * (*(here - step) + here[step]) + FAR * (*(here - 2 * step) + here[2 * step]);
}

__kernel void acoustic(__global const float *restrict now, __global float *restrict before,
                       __global const float *restrict speed)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int z = get_global_id(2);
    const int nx = get_global_size(0);
    const int ny = get_global_size(1);
    const int nz = get_global_size(2);
    if (x < 2 || y < 2 || z < 2 || x >= nx - 2 || y >= ny - 2 || z >= nz - 2) {
        return;
    }
    const size_t layer = (size_t)nx * ny;
    const size_t place = z * layer + y * nx + x;
    __global const float *here = now + place;
    const float bend = CENTRE * *here + add_pairs(here, 1) + add_pairs(here, nx)
                       + add_pairs(here, layer);
    before[place] = 2.0f * *here - before[place] + speed[place] * bend;
}
