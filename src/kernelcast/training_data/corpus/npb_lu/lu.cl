// Initial values of a flow solver at the inner points of the grid, a point a work-item, blended from
// the exact solution at the ends of the three lines through the point.
#ifdef USE_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifndef REAL
#define REAL float
#endif
#define FIELDS 5
#define TERMS 13

// Part of the exact solution that depends on the place along one axis; the three axes' coefficients
// of each power lie side by side.
inline REAL find_part(__constant REAL *first, const REAL place)
{
    return place * (first[0] + place * (first[3] + place * (first[6] + place * first[9])));
}

// Value of one field of the exact solution.
inline REAL find_exact(__constant REAL *field, const REAL xi, const REAL eta, const REAL zeta)
{
    return field[0] + find_part(field + 1, xi) + find_part(field + 2, eta)
         + find_part(field + 3, zeta);
}

__kernel void setiv(__global REAL *restrict u,
                    __constant REAL *coefficients,
                    const int nx,
                    const int ny,
                    const int nz)
{
    const int i = get_global_id(0);
    const int j = get_global_id(1);
    const int k = get_global_id(2);
    if (i == 0 || j == 0 || k == 0 || i >= nx - 1 || j >= ny - 1 || k >= nz - 1) {
        return;
    }
    const REAL xi = (REAL)i / (nx - 1);
    const REAL eta = (REAL)j / (ny - 1);
    const REAL zeta = (REAL)k / (nz - 1);
    __global REAL *point = u + ((k * ny + j) * nx + i) * FIELDS;
    for (int m = 0; m < FIELDS; ++m) {
        __constant REAL *field = coefficients + m * TERMS;
        const REAL along_x =
            (1 - xi) * find_exact(field, 0, eta, zeta) + xi * find_exact(field, 1, eta, zeta);
        const REAL along_y =
            (1 - eta) * find_exact(field, xi, 0, zeta) + eta * find_exact(field, xi, 1, zeta);
        const REAL along_z =
            (1 - zeta) * find_exact(field, xi, eta, 0) + zeta * find_exact(field, xi, eta, 1);
        point[m] = along_x + along_y + along_z - along_x * along_y - along_y * along_z
                 - along_z * along_x + along_x * along_y * along_z;
    }
}
