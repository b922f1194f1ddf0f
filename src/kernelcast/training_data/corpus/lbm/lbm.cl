// One step of the lattice-Boltzmann method with 19 velocities in three dimensions and a single
// relaxation time: a work-item collides one cell and stores its distributions to the neighbours
// they move to (a push). Cells inside an obstacle send everything back; driven cells have their
// velocity imposed. Each direction is an array of its own; neighbours past the end of a row are the
// next row's, and two layers of margin on either side take what leaves the grid.
#define OBSTACLE 1
#define DRIVEN 2
#define OMEGA 1.85f
#define REST (1.0f / 3.0f)
#define AXIS (1.0f / 18.0f)
#define DIAGONAL (1.0f / 36.0f)

#define LOAD(q) const float f##q = source[(q) * stride + cell]
#define STORE(q, shift, value) target[(q) * stride + cell + (shift)] = (value)
#define RELAX(q, weight, along, shift) \
    STORE(q, shift, \
          (1.0f - OMEGA) * f##q \
              + OMEGA * (weight) * density \
                    * (1.0f + (along) * (3.0f + 4.5f * (along)) - speed2))

__kernel void stream_collide(__global const float *restrict source,
                             __global const int *restrict flags,
                             __global float *restrict target,
                             const int nx,
                             const int ny,
                             const int nz)
{
    const int layer = nx * ny;
    const int stride = layer * (nz + 4);
    const int here = get_global_id(0) + nx * (get_global_id(1) + ny * get_global_id(2));
    const int cell = here + 2 * layer;
    const int flag = flags[here];

    LOAD(0);
    LOAD(1); LOAD(2); LOAD(3); LOAD(4); LOAD(5); LOAD(6);
    LOAD(7); LOAD(8); LOAD(9); LOAD(10); LOAD(11); LOAD(12);
    LOAD(13); LOAD(14); LOAD(15); LOAD(16); LOAD(17); LOAD(18);

    if (flag & OBSTACLE) {
        STORE(0, 0, f0);
        STORE(1, 1, f2);
        STORE(2, -1, f1);
        STORE(3, nx, f4);
        STORE(4, -nx, f3);
        STORE(5, layer, f6);
        STORE(6, -layer, f5);
        STORE(7, 1 + nx, f8);
        STORE(8, -1 - nx, f7);
        STORE(9, -1 + nx, f10);
        STORE(10, 1 - nx, f9);
        STORE(11, 1 + layer, f12);
        STORE(12, -1 - layer, f11);
        STORE(13, -1 + layer, f14);
        STORE(14, 1 - layer, f13);
        STORE(15, nx + layer, f16);
        STORE(16, -nx - layer, f15);
        STORE(17, -nx + layer, f18);
        STORE(18, nx - layer, f17);
        return;
    }

    const float density = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8 + f9 + f10 + f11 + f12 + f13
                        + f14 + f15 + f16 + f17 + f18;
    float ux = (f1 - f2 + f7 - f8 - f9 + f10 + f11 - f12 - f13 + f14) / density;
    float uy = (f3 - f4 + f7 - f8 + f9 - f10 + f15 - f16 - f17 + f18) / density;
    float uz = (f5 - f6 + f11 - f12 + f13 - f14 + f15 - f16 + f17 - f18) / density;
    if (flag & DRIVEN) {
        ux = 0.005f;
        uy = 0.002f;
        uz = 0.0f;
    }
    const float speed2 = 1.5f * (ux * ux + uy * uy + uz * uz);

    RELAX(0, REST, 0.0f, 0);
    RELAX(1, AXIS, ux, 1);
    RELAX(2, AXIS, -ux, -1);
    RELAX(3, AXIS, uy, nx);
    RELAX(4, AXIS, -uy, -nx);
    RELAX(5, AXIS, uz, layer);
    RELAX(6, AXIS, -uz, -layer);
    RELAX(7, DIAGONAL, ux + uy, 1 + nx);
    RELAX(8, DIAGONAL, -ux - uy, -1 - nx);
    RELAX(9, DIAGONAL, -ux + uy, -1 + nx);
    RELAX(10, DIAGONAL, ux - uy, 1 - nx);
    RELAX(11, DIAGONAL, ux + uz, 1 + layer);
    RELAX(12, DIAGONAL, -ux - uz, -1 - layer);
    RELAX(13, DIAGONAL, -ux + uz, -1 + layer);
    RELAX(14, DIAGONAL, ux - uz, 1 - layer);
    RELAX(15, DIAGONAL, uy + uz, nx + layer);
    RELAX(16, DIAGONAL, -uy - uz, -nx - layer);
    RELAX(17, DIAGONAL, -uy + uz, -nx + layer);
    RELAX(18, DIAGONAL, uy - uz, nx - layer);
}
