/* European calls on a grid of prices, implicit steps in time; an option per work-item, double precision. */
#define NODES 48
__kernel void crank_nicolson(__global const double *strikes, __global double *values, double rate,
                             double sigma, double years, int steps)
{
    const size_t o = get_global_id(0);
    const double strike = strikes[o], dt = years / steps;
    double v[NODES], scratch[NODES];
    for (int i = 0; i < NODES; ++i)
        v[i] = fmax(i * 2.0 * strike / (NODES - 1) - strike, 0.0);
    for (int s = 1; s <= steps; ++s) {
        double carried = 0.0, before = v[0];
        scratch[0] = 0.0;
        for (int i = 1; i < NODES - 1; ++i) {
            const double a = 0.25 * dt * (sigma * sigma * i * i - rate * i);
            const double b = -0.5 * dt * (sigma * sigma * i * i + rate);
            const double c = 0.25 * dt * (sigma * sigma * i * i + rate * i);
            const double right = a * before + (1 + b) * v[i] + c * v[i + 1];
            const double pivot = 1 / (1 - b + a * scratch[i - 1]);
            before = v[i];
            scratch[i] = -c * pivot;
            v[i] = carried = (right + a * carried) * pivot;
        }
        v[NODES - 1] = 2 * strike - strike * exp(-rate * s * dt);
        for (int i = NODES - 2; i > 0; --i)
            v[i] -= scratch[i] * v[i + 1];
    }
    values[o] = v[NODES / 2];
}
