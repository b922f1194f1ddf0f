uint xs(uint *s)
{
    uint x = *s;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *s = x;
}

kernel void rej(global const uint *seed, global float *o, float th)
{
    int i = get_global_id(0);
    uint s = seed[i] | 1;
    float a = 0;
    int n = 0;
    while (n < 16) {
        float u = xs(&s) * 2.3283064e-10f, v = xs(&s) * 2.3283064e-10f;
        if (u * u + v * v < th) {
            a += u;
            n++;
        }
    }
    o[i] = a;
}
