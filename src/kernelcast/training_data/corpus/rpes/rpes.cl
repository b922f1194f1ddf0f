// Two-electron repulsion integrals over contracted s functions. A work-item computes the integral
// of one pair of pairs of shells, a sum over three primitives in each of the four shells; every
// term needs the Boys function, the weight of the first Rys root, which takes a series, the error
// function or its asymptote by the size of its argument.
#define PRIMITIVES 3
#define HALF_ROOT_PI 0.88622693f
#define TWO_PI_5_2 34.986837f

inline float find_boys(const float t)
{
    if (t < 1.0f) {
        float sum = 1.0f / 685440.0f;
        sum = 1.0f / 75600.0f - t * sum;
        sum = 1.0f / 9360.0f - t * sum;
        sum = 1.0f / 1320.0f - t * sum;
        sum = 1.0f / 216.0f - t * sum;
        sum = 1.0f / 42.0f - t * sum;
        sum = 1.0f / 10.0f - t * sum;
        sum = 1.0f / 3.0f - t * sum;
        return 1.0f - t * sum;
    }
    const float asymptote = HALF_ROOT_PI * rsqrt(t);
    return t < 16.0f ? asymptote * erf(sqrt(t)) : asymptote;
}

inline float find_distance2(const float4 a, const float4 b)
{
    const float dx = a.x - b.x;
    const float dy = a.y - b.y;
    const float dz = a.z - b.z;
    return dx * dx + dy * dy + dz * dz;
}

// A shell is its centre and its kind; a kind has an exponent and a coefficient for each primitive.
__kernel void compute_x(__global const float4 *restrict shells,
                        __global const int2 *restrict pairs,
                        __constant float2 *primitives,
                        __global float *restrict integrals,
                        const int pair_count)
{
    const int ket = get_global_id(0);
    const int bra = get_global_id(1);
    const float4 a = shells[pairs[bra].x];
    const float4 b = shells[pairs[bra].y];
    const float4 c = shells[pairs[ket].x];
    const float4 d = shells[pairs[ket].y];
    const float ab2 = find_distance2(a, b);
    const float cd2 = find_distance2(c, d);

    float integral = 0.0f;
    for (int i = 0; i < PRIMITIVES; ++i) {
        const float2 pa = primitives[(int)a.w * PRIMITIVES + i];
        for (int j = 0; j < PRIMITIVES; ++j) {
            const float2 pb = primitives[(int)b.w * PRIMITIVES + j];
            const float p = pa.x + pb.x;
            const float4 centre_p = (pa.x * a + pb.x * b) / p;
            const float factor = TWO_PI_5_2 * pa.y * pb.y * exp(-pa.x * pb.x / p * ab2) / p;
            for (int k = 0; k < PRIMITIVES; ++k) {
                const float2 pc = primitives[(int)c.w * PRIMITIVES + k];
                for (int l = 0; l < PRIMITIVES; ++l) {
                    const float2 pd = primitives[(int)d.w * PRIMITIVES + l];
                    const float q = pc.x + pd.x;
                    const float4 centre_q = (pc.x * c + pd.x * d) / q;
                    const float t = p * q / (p + q) * find_distance2(centre_p, centre_q);
                    integral += factor * pc.y * pd.y * exp(-pc.x * pd.x / q * cd2)
                              * rsqrt(p + q) / q * find_boys(t);
                }
            }
        }
    }
    integrals[bra * pair_count + ket] = integral;
}
