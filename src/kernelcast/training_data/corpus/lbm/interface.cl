// A step of interface tracking in a two-phase flow: the conservative Allen-Cahn equation by the
// lattice-Boltzmann method with 15 velocities. A work-item pulls the distributions of one cell from
// the neighbours that send them, adds what keeps the interface as wide as it is, which takes the
// phase field's gradient (a finite difference of 7 points), and stores what it has collided and the
// new phase field. Each direction is an array of its own; neighbours past the end of a row are the
// next row's, and two layers of margin on either side hold what comes from outside.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define OMEGA 1.25
#define WIDTH 4.0
#define REST (2.0 / 9.0)
#define AXIS (1.0 / 9.0)
#define DIAGONAL (1.0 / 72.0)

#define PULL(q, dx, dy, dz) const double f##q = source[(q) * stride + cell - SHIFT(dx, dy, dz)]
#define SHIFT(dx, dy, dz) ((dz) * layer + (dy) * nx + (dx))
#define COLLIDE(q, weight, dx, dy, dz) \
    { \
        const double wanted = (weight) * (phase * (1.0 + 3.0 * ((dx) * u + (dy) * v + (dz) * w)) \
                              + sharpening * ((dx) * gx + (dy) * gy + (dz) * gz)); \
        const double after = f##q + OMEGA * (wanted - f##q); \
        target[(q) * stride + cell] = after; \
        sum += after; \
    }

__kernel void track_interface(__global const double *restrict source,
                              __global const double *restrict field,
                              __global double *restrict target,
                              __global double *restrict new_field,
                              const int nx, const int ny, const int nz,
                              const double u, const double v, const double w)
{
    const int layer = nx * ny;
    const int stride = layer * (nz + 4);
    const int cell =
        get_global_id(0) + nx * (get_global_id(1) + ny * (get_global_id(2) + 2));

    PULL(0, 0, 0, 0);
    PULL(1, 1, 0, 0); PULL(2, -1, 0, 0); PULL(3, 0, 1, 0);
    PULL(4, 0, -1, 0); PULL(5, 0, 0, 1); PULL(6, 0, 0, -1);
    PULL(7, 1, 1, 1); PULL(8, -1, -1, -1); PULL(9, 1, 1, -1); PULL(10, -1, -1, 1);
    PULL(11, 1, -1, 1); PULL(12, -1, 1, -1); PULL(13, -1, 1, 1); PULL(14, 1, -1, -1);

    double gx = 0.5 * (field[cell + 1] - field[cell - 1]);
    double gy = 0.5 * (field[cell + nx] - field[cell - nx]);
    double gz = 0.5 * (field[cell + layer] - field[cell - layer]);
    const double here = field[cell] - 0.5;
    const double length = sqrt(gx * gx + gy * gy + gz * gz) + 1e-12;
    gx /= length;
    gy /= length;
    gz /= length;
    const double sharpening = (1.0 - 4.0 * here * here) / WIDTH;
    const double phase = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8 + f9 + f10 + f11 + f12 + f13
                         + f14;
    double sum = 0.0;
    COLLIDE(0, REST, 0, 0, 0);
    COLLIDE(1, AXIS, 1, 0, 0); COLLIDE(2, AXIS, -1, 0, 0); COLLIDE(3, AXIS, 0, 1, 0);
    COLLIDE(4, AXIS, 0, -1, 0); COLLIDE(5, AXIS, 0, 0, 1); COLLIDE(6, AXIS, 0, 0, -1);
    COLLIDE(7, DIAGONAL, 1, 1, 1); COLLIDE(8, DIAGONAL, -1, -1, -1);
    COLLIDE(9, DIAGONAL, 1, 1, -1); COLLIDE(10, DIAGONAL, -1, -1, 1);
    COLLIDE(11, DIAGONAL, 1, -1, 1); COLLIDE(12, DIAGONAL, -1, 1, -1);
    COLLIDE(13, DIAGONAL, -1, 1, 1); COLLIDE(14, DIAGONAL, 1, -1, -1);
    new_field[cell] = sum;
}
