// Initial values of a flow solver: inside the grid the exact solution on the six faces is blended
// by transfinite interpolation. A work-item takes a line along x; five values a point lie together.
#ifdef USE_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifndef REAL
#define REAL float
#endif
#define FIELDS 5
#define TERMS 13

// The exact solution of each field is a constant plus a polynomial of fourth degree along each axis.
inline void find_exact(const REAL xi,
                       const REAL eta,
                       const REAL zeta,
                       __constant REAL *coefficients,
                       REAL *solution)
{
    for (int m = 0; m < FIELDS; ++m) {
        __constant REAL *c = coefficients + m * TERMS;
        solution[m] = c[0]
                    + xi * (c[1] + xi * (c[4] + xi * (c[7] + xi * c[10])))
                    + eta * (c[2] + eta * (c[5] + eta * (c[8] + eta * c[11])))
                    + zeta * (c[3] + zeta * (c[6] + zeta * (c[9] + zeta * c[12])));
    }
}

__kernel void initialize2(__global REAL *restrict u,
                          __constant REAL *coefficients,
                          const int nx,
                          const int ny,
                          const int nz)
{
    const int j = get_global_id(0);
    const int k = get_global_id(1);
    const REAL eta = (REAL)j / (ny - 1);
    const REAL zeta = (REAL)k / (nz - 1);
    REAL faces[3][2][FIELDS];

    find_exact(0, eta, zeta, coefficients, faces[0][0]);
    find_exact(1, eta, zeta, coefficients, faces[0][1]);
    for (int i = 0; i < nx; ++i) {
        const REAL xi = (REAL)i / (nx - 1);
        for (int end = 0; end < 2; ++end) {
            find_exact(xi, (REAL)end, zeta, coefficients, faces[1][end]);
            find_exact(xi, eta, (REAL)end, coefficients, faces[2][end]);
        }
        __global REAL *point = u + ((k * ny + j) * nx + i) * FIELDS;
        for (int m = 0; m < FIELDS; ++m) {
            const REAL along_x = xi * faces[0][1][m] + (1 - xi) * faces[0][0][m];
            const REAL along_y = eta * faces[1][1][m] + (1 - eta) * faces[1][0][m];
            const REAL along_z = zeta * faces[2][1][m] + (1 - zeta) * faces[2][0][m];
            point[m] = along_x + along_y + along_z - along_x * along_y - along_x * along_z
                     - along_y * along_z + along_x * along_y * along_z;
        }
    }
}
