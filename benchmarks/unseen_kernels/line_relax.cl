// Multigrid smoother: solves along z for each column of a grid, the coefficients in a private array.
#define DEPTH 64
kernel void line_relax(global const float *rhs, global const float *old, global float *new, int nx, int ny)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < 1 || x >= nx - 1 || y < 1 || y >= ny - 1)
        return;
    float upper[DEPTH], right[DEPTH];
    for (int z = 0; z < DEPTH; z++) {
        int i = (z * ny + y) * nx + x;
        float b = rhs[i] + old[i - 1] + old[i + 1] + old[i - nx] + old[i + nx];
        float d = 1.0f / (6.0f - (z ? upper[z - 1] : 0.0f));
        upper[z] = d;
        right[z] = (b + (z ? right[z - 1] : 0.0f)) * d;
    }
    float u = 0.0f;
    for (int z = DEPTH - 1; z >= 0; z--) {
        u = right[z] + upper[z] * u;
        new[(z * ny + y) * nx + x] = u;
    }
}
