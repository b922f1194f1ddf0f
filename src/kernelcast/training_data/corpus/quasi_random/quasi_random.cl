// Points of a Sobol sequence, and the inverse of the normal distribution's cumulative function.
#define BITS 31

// Work-item (x, y) makes coordinate y of the points x, x + width of the launch and so on: the
// exclusive or of the direction numbers that the bits of the point's Gray code choose.
__kernel void quasi(__global float *restrict out, __constant uint *directions, const uint points)
{
    const uint dimension = get_global_id(1);
    __constant uint *mine = directions + dimension * BITS;
    for (uint point = get_global_id(0); point < points; point += get_global_size(0)) {
        const uint gray = point ^ (point >> 1);
        uint value = 0;
        for (uint bit = 0; bit < BITS; ++bit) {
            value ^= (gray >> bit) & 1 ? mine[bit] : 0;
        }
        out[(size_t)dimension * points + point] = value * (1.0f / (1u << BITS));
    }
}

// Beasley, Springer and Moro: a rational function for the middle, a polynomial of log(-log) for the
// tails. `half_share` is a probability of at most one half.
inline float find_quantile(const float half_share)
{
    const float y = half_share - 0.5f;
    if (y > -0.42f) {
        const float z = y * y;
        const float above = ((-25.44106049637f * z + 41.39119773534f) * z - 18.61500062529f) * z
                            + 2.50662823884f;
        const float below = (((3.13082909833f * z - 21.06224101826f) * z + 23.08336743743f) * z
                             - 8.47351093090f) * z + 1.0f;
        return y * above / below;
    }
    const float z = log(-log(half_share));
    float tail = 0.0000003960315187f;
    tail = tail * z + 0.0000002888167364f;
    tail = tail * z + 0.0000321767881768f;
    tail = tail * z + 0.0003951896511919f;
    tail = tail * z + 0.0038405729373609f;
    tail = tail * z + 0.0276438810333863f;
    tail = tail * z + 0.1607979714918209f;
    tail = tail * z + 0.9761690190917186f;
    tail = tail * z + 0.3374754822726147f;
    return -tail;
}

// The upper half of the numbers is mirrored, so that both tails are as exact.
__kernel void inv_cnd(__global float *restrict out, __global const uint *restrict in,
                      const ulong count)
{
    for (ulong i = get_global_id(0); i < count; i += get_global_size(0)) {
        const uint number = in[i];
        const bool is_upper = number >= 0x80000000u;
        const uint lower = is_upper ? ~number : number;
        const float quantile = find_quantile((lower + 0.5f) * (1.0f / 4294967296.0f));
        out[i] = is_upper ? -quantile : quantile;
    }
}
