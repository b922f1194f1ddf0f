// Tridiagonal systems, one a work-group, in local memory: lower * x[i - 1] + middle * x[i] +
// upper * x[i + 1] = right. A system's first `lower` and last `upper` are not looked at. The build
// options say how many equations a system has, a power of two.

typedef struct {
    __local float *lower;
    __local float *middle;
    __local float *upper;
    __local float *right;
} Equations;

inline void load_equation(const Equations held, const int i, const size_t from,
                          __global const float *lower, __global const float *middle,
                          __global const float *upper, __global const float *right)
{
    held.lower[i] = i == 0 ? 0.0f : lower[from];
    held.middle[i] = middle[from];
    held.upper[i] = i == SYSTEM - 1 ? 0.0f : upper[from];
    held.right[i] = right[from];
}

// Gives equation i with the unknowns `stride` away taken out by the equations there: lower, middle,
// upper, right. Neighbours outside the system have coefficients of zero, so any other stands in.
inline float4 take_out(const Equations held, const int i, const int stride)
{
    const int before = max(i - stride, 0);
    const int after = min(i + stride, SYSTEM - 1);
    const float share_before = held.lower[i] / held.middle[before];
    const float share_after = held.upper[i] / held.middle[after];
    return (float4)(-held.lower[before] * share_before,
                    held.middle[i] - held.upper[before] * share_before
                        - held.lower[after] * share_after,
                    -held.upper[after] * share_after,
                    held.right[i] - held.right[before] * share_before
                        - held.right[after] * share_after);
}

inline void put_equation(const Equations held, const int i, const float4 equation)
{
    held.lower[i] = equation.x;
    held.middle[i] = equation.y;
    held.upper[i] = equation.z;
    held.right[i] = equation.w;
}

// Parallel cyclic reduction: every equation is reduced in every step, until all stand alone.
__kernel __attribute__((reqd_work_group_size(SYSTEM, 1, 1)))
void pcr(__global const float *restrict lower,
         __global const float *restrict middle,
         __global const float *restrict upper,
         __global const float *restrict right,
         __global float *restrict x)
{
    __local float lowers[SYSTEM];
    __local float middles[SYSTEM];
    __local float uppers[SYSTEM];
    __local float rights[SYSTEM];
    const Equations held = {lowers, middles, uppers, rights};

    const int i = get_local_id(0);
    load_equation(held, i, get_global_id(0), lower, middle, upper, right);
    for (int stride = 1; stride < SYSTEM; stride *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const float4 reduced = take_out(held, i, stride);
        barrier(CLK_LOCAL_MEM_FENCE);
        put_equation(held, i, reduced);
    }
    x[get_global_id(0)] = held.right[i] / held.middle[i];
}

// Cyclic reduction: each step halves the equations that are left, down to one; then the unknowns
// are found in the opposite order, twice as many from step to step.
__kernel __attribute__((reqd_work_group_size(SYSTEM / 2, 1, 1)))
void cycle(__global const float *restrict lower,
           __global const float *restrict middle,
           __global const float *restrict upper,
           __global const float *restrict right,
           __global float *restrict x)
{
    __local float lowers[SYSTEM];
    __local float middles[SYSTEM];
    __local float uppers[SYSTEM];
    __local float rights[SYSTEM];
    __local float unknowns[SYSTEM];
    const Equations held = {lowers, middles, uppers, rights};

    const int lane = get_local_id(0);
    const size_t begin = get_group_id(0) * (size_t)SYSTEM;
    load_equation(held, lane, begin + lane, lower, middle, upper, right);
    load_equation(held, lane + SYSTEM / 2, begin + lane + SYSTEM / 2, lower, middle, upper, right);
    for (int stride = 1; stride < SYSTEM; stride *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int i = 2 * stride * (lane + 1) - 1;
        if (i < SYSTEM) {
            put_equation(held, i, take_out(held, i, stride));
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
        unknowns[SYSTEM - 1] = held.right[SYSTEM - 1] / held.middle[SYSTEM - 1];
    }
    for (int stride = SYSTEM / 2; stride > 0; stride /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int i = 2 * stride * lane + stride - 1;
        if (i < SYSTEM) {
            const float before = i >= stride ? held.lower[i] * unknowns[i - stride] : 0.0f;
            const float after = held.upper[i] * unknowns[i + stride];
            unknowns[i] = (held.right[i] - before - after) / held.middle[i];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    x[begin + lane] = unknowns[lane];
    x[begin + lane + SYSTEM / 2] = unknowns[lane + SYSTEM / 2];
}
