uint xs(uint *s)
{
    uint x = *s;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *s = x;
}

kernel void mc(global const uint *seed, global float *o, int paths, float s0, float k, float r,
               float vol)
{
    int i = get_global_id(0);
    uint s = seed[i] | 1;
    float a = 0;
    for (int j = 0; j < paths; j++) {
        float u = (xs(&s) + 1.f) * 2.3283064e-10f, v = xs(&s) * 2.3283064e-10f;
        float z = sqrt(-2.f * log(u)) * cospi(2.f * v);
        a += max(s0 * exp((r - .5f * vol * vol) + vol * z) - k, 0.f);
    }
    o[i] = a / paths;
}
