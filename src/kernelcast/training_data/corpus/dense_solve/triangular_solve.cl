// Forward substitution with many small unit lower triangular matrices, one a work-item. Systems are
// interleaved: an entry of one stands beside the same entry of the next, so that neighbouring
// work-items load neighbouring values. The rows above the diagonal are not stored.
__kernel void triangular_solve(__global const float *restrict lower,
                               __global const float *restrict right,
                               __global float *restrict x, const int order, const int systems)
{
    const size_t system = get_global_id(0);
    size_t entry = system;
    for (int row = 0; row < order; ++row) {
        float value = right[(size_t)row * systems + system];
        for (int column = 0; column < row; ++column) {
            value -= lower[entry] * x[(size_t)column * systems + system];
            entry += systems;
        }
        x[(size_t)row * systems + system] = value;
    }
}
