// One collide-and-stream step of a D2Q9 lattice (pull, single relaxation time, periodic edges).
// Cells with solid != 0 reflect what streams into them. The nine numbers of a cell lie together.

#define AT(q, x, y) (((y) * nx + (x)) * 9 + (q))

__kernel void lbm_d2q9(__global const float *restrict f, __global float *restrict f_next,
                       __global const uchar *restrict solid, const int nx, const int ny,
                       const float omega)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int w = x == 0 ? nx - 1 : x - 1;
    const int e = x == nx - 1 ? 0 : x + 1;
    const int s = y == 0 ? ny - 1 : y - 1;
    const int n = y == ny - 1 ? 0 : y + 1;

    const float f0 = f[AT(0, x, y)];
    const float f1 = f[AT(1, w, y)];
    const float f2 = f[AT(2, x, s)];
    const float f3 = f[AT(3, e, y)];
    const float f4 = f[AT(4, x, n)];
    const float f5 = f[AT(5, w, s)];
    const float f6 = f[AT(6, e, s)];
    const float f7 = f[AT(7, e, n)];
    const float f8 = f[AT(8, w, n)];

    if (solid[y * nx + x]) {
        f_next[AT(0, x, y)] = f0;
        f_next[AT(1, x, y)] = f3;
        f_next[AT(2, x, y)] = f4;
        f_next[AT(3, x, y)] = f1;
        f_next[AT(4, x, y)] = f2;
        f_next[AT(5, x, y)] = f7;
        f_next[AT(6, x, y)] = f8;
        f_next[AT(7, x, y)] = f5;
        f_next[AT(8, x, y)] = f6;
        return;
    }

    const float rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8;
    const float inverse = 1.0f / rho;
    const float ux = (f1 + f5 + f8 - f3 - f6 - f7) * inverse;
    const float uy = (f2 + f5 + f6 - f4 - f7 - f8) * inverse;
    const float base = 1.0f - 1.5f * (ux * ux + uy * uy);
    const float keep = 1.0f - omega;
    const float centre = omega * rho * (4.0f / 9.0f);
    const float straight = omega * rho * (1.0f / 9.0f);
    const float diagonal = omega * rho * (1.0f / 36.0f);
    const float a = ux + uy;
    const float b = uy - ux;

    f_next[AT(0, x, y)] = keep * f0 + centre * base;
    f_next[AT(1, x, y)] = keep * f1 + straight * (base + 3.0f * ux + 4.5f * ux * ux);
    f_next[AT(2, x, y)] = keep * f2 + straight * (base + 3.0f * uy + 4.5f * uy * uy);
    f_next[AT(3, x, y)] = keep * f3 + straight * (base - 3.0f * ux + 4.5f * ux * ux);
    f_next[AT(4, x, y)] = keep * f4 + straight * (base - 3.0f * uy + 4.5f * uy * uy);
    f_next[AT(5, x, y)] = keep * f5 + diagonal * (base + 3.0f * a + 4.5f * a * a);
    f_next[AT(6, x, y)] = keep * f6 + diagonal * (base + 3.0f * b + 4.5f * b * b);
    f_next[AT(7, x, y)] = keep * f7 + diagonal * (base - 3.0f * a + 4.5f * a * a);
    f_next[AT(8, x, y)] = keep * f8 + diagonal * (base - 3.0f * b + 4.5f * b * b);
}
