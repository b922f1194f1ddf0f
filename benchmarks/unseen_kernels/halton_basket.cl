// A basket of six shares priced at quasi-random points: digits of the point's number in six bases.
constant uint primes[6] = {2, 3, 5, 7, 11, 13};

float to_normal(float u)
{
    float t = sqrt(-2.0f * log(u < 0.5f ? u : 1.0f - u));
    float z = t - (2.30753f + 0.27061f * t) / (1.0f + t * (0.99229f + t * 0.04481f));
    return u < 0.5f ? -z : z;
}

kernel void basket(global float *payoffs, constant float *sigmas, uint first, float strike)
{
    uint id = get_global_id(0);
    float sum = 0.0f;
    for (int d = 0; d < 6; d++) {
        uint n = first + id, base = primes[d];
        float u = 0.0f, digit = 1.0f;
        while (n) {
            digit /= base;
            u += digit * (n % base);
            n /= base;
        }
        sum += exp(sigmas[d] * to_normal(clamp(u, 1e-6f, 1.0f - 1e-6f)) - 0.5f * sigmas[d] * sigmas[d]);
    }
    payoffs[id] = fmax(100.0f * sum / 6 - strike, 0.0f);
}
