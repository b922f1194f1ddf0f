// Solves lower triangular systems of 24 unknowns, each with many right sides: a work-item takes a
// right side and goes on column by column, so that an unknown, once known, is taken off all later ones.
#define UNKNOWNS 24

__kernel void solve_columns(__global const float *restrict matrices,
                            __global const float *restrict reciprocals,
                            __global const float *restrict right, __global float *restrict solved)
{
    const size_t sides = get_global_size(0);
    const size_t system = get_global_id(1);
    const size_t first = system * UNKNOWNS * sides + get_global_id(0);
    __global const float *matrix = matrices + system * UNKNOWNS * UNKNOWNS;
    __global const float *reciprocal = reciprocals + system * UNKNOWNS;
    float rest[UNKNOWNS];
    for (int row = 0; row < UNKNOWNS; ++row) {
        rest[row] = right[first + row * sides];
    }
    for (int column = 0; column < UNKNOWNS; ++column) {
        const float known = rest[column] * reciprocal[column];
        for (int row = column + 1; row < UNKNOWNS; ++row) {
            rest[row] -= matrix[row * UNKNOWNS + column] * known;
        }
        solved[first + column * sides] = known;
    }
}
