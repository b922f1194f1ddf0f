float cnd(float d)
{
    return 0.5f * erfc(-d * 0.70710678f);
}

kernel void bs(global const float *s, global const float *k, global const float *t, global float *c,
               float r, float v)
{
    int i = get_global_id(0);
    float q = v * sqrt(t[i]);
    float d1 = (log(s[i] / k[i]) + (r + .5f * v * v) * t[i]) / q;
    c[i] = s[i] * cnd(d1) - k[i] * exp(-r * t[i]) * cnd(d1 - q);
}
