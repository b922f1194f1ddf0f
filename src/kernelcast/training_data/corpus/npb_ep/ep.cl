// Pairs of Gaussian random numbers by the polar method, from the linear congruential sequence
// x -> 5^13 x mod 2^46. Each work-item jumps to its part of the sequence, makes PAIRS pairs, counts
// the accepted ones by the square ring they fall into and adds them up.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

#define SEED 271828183.0
#define MULTIPLIER 1220703125.0
#define RINGS 10
#define TWO_23 8388608.0
#define TWO_46 70368744177664.0

// x a mod 2^46, exactly: both factors are split in halves of 23 bits.
inline double multiply_modulo(const double x, const double a)
{
    const double x_high = trunc(x / TWO_23);
    const double x_low = x - TWO_23 * x_high;
    const double a_high = trunc(a / TWO_23);
    const double a_low = a - TWO_23 * a_high;
    const double middle = a_high * x_low + a_low * x_high;
    const double kept = middle - TWO_23 * trunc(middle / TWO_23);
    const double product = TWO_23 * kept + a_low * x_low;
    return product - TWO_46 * trunc(product / TWO_46);
}

__kernel void ep(__global double2 *restrict sums,
                 __global int *restrict counts,
                 __local double2 *local_sums)
{
    __local int rings[RINGS];

    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    if (lane < RINGS) {
        rings[lane] = 0;
    }

    // 5^13 to the power of 2 * PAIRS, then that to the power of the id
    double jump = MULTIPLIER;
    for (int taken = 1; taken < 2 * PAIRS; taken *= 2) {
        jump = multiply_modulo(jump, jump);
    }
    double x = SEED;
    for (uint left = get_global_id(0); left > 0; left /= 2) {
        if (left % 2 == 1) {
            x = multiply_modulo(x, jump);
        }
        jump = multiply_modulo(jump, jump);
    }

    barrier(CLK_LOCAL_MEM_FENCE);
    double2 sum = (double2)(0.0);
    for (int k = 0; k < PAIRS; ++k) {
        x = multiply_modulo(x, MULTIPLIER);
        const double u = 2.0 * (x / TWO_46) - 1.0;
        x = multiply_modulo(x, MULTIPLIER);
        const double v = 2.0 * (x / TWO_46) - 1.0;
        const double t = u * u + v * v;
        if (t <= 1.0) {
            const double factor = sqrt(-2.0 * log(t) / t);
            const double2 pair = factor * (double2)(u, v);
            const int ring = (int)fmax(fabs(pair.x), fabs(pair.y));
            atomic_inc(&rings[ring]);
            sum += pair;
        }
    }

    local_sums[lane] = sum;
    for (int reach = lanes / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) {
            local_sums[lane] += local_sums[lane + reach];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int group = get_group_id(0);
    if (lane == 0) {
        sums[group] = local_sums[0];
    }
    if (lane < RINGS) {
        counts[group * RINGS + lane] = rings[lane];
    }
}
