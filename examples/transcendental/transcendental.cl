// Rounds of exp, log, sin and pow for eight elements a work-item, between one load and one store.

inline float8 mix_once(const float8 v, const float power)
{
    const float8 wave = 1.5f + sin(v);
    return log(1.0f + exp(wave)) + pow(wave, (float8)(power));
}

__kernel void transcendental(__global const float8 *restrict x,
                             __global float8 *restrict y,
                             const float power,
                             const short rounds)
{
    const size_t i = get_global_id(0);
    float8 v = x[i];
    for (short r = 0; r < rounds; ++r) {
        v = mix_once(v, power);
    }
    y[i] = v;
}
