// A step of the Euler equations of gases in two dimensions, Rusanov fluxes, double precision.
double4 flux(double4 u, double p, int along_y)
{
    double v = along_y ? u.z / u.x : u.y / u.x;
    double4 f = u * v;
    f.w += p * v;
    if (along_y) f.z += p; else f.y += p;
    return f;
}

double pressure(double4 u) { return 0.4 * (u.w - 0.5 * (u.y * u.y + u.z * u.z) / u.x); }

double4 face(double4 a, double4 b, int along_y)
{
    double p = pressure(a), q = pressure(b);
    double va = fabs(along_y ? a.z : a.y) / a.x + sqrt(1.4 * p / a.x);
    double vb = fabs(along_y ? b.z : b.y) / b.x + sqrt(1.4 * q / b.x);
    return 0.5 * (flux(a, p, along_y) + flux(b, q, along_y) - fmax(va, vb) * (b - a));
}

kernel void euler(global const double4 *now, global double4 *next, int width, int height, double dt_by_dx)
{
    int x = get_global_id(0) + 1, y = get_global_id(1) + 1;
    if (x >= width - 1 || y >= height - 1)
        return;
    int i = y * width + x;
    double4 u = now[i];
    double4 change = face(u, now[i + 1], 0) - face(now[i - 1], u, 0)
                   + face(u, now[i + width], 1) - face(now[i - width], u, 1);
    next[i] = u - dt_by_dx * change;
}
