/* A cascade of four second-order sections, a channel per work-item; samples of channels interleaved. */
#define SECTIONS 4
__kernel void biquad_bank(__global const float *x, __global float *y, __constant float *coefficients,
                          uint channels, uint samples)
{
    uint ch = get_global_id(0);
    float z1[SECTIONS], z2[SECTIONS];
    for (int s = 0; s < SECTIONS; s++)
        z1[s] = z2[s] = 0.0f;
    for (uint n = 0; n < samples; n++) {
        float v = x[n * channels + ch];
        for (int s = 0; s < SECTIONS; s++) {
            __constant float *c = coefficients + 5 * s;
            float w = c[0] * v + z1[s];
            z1[s] = c[1] * v - c[3] * w + z2[s];
            z2[s] = c[2] * v - c[4] * w;
            v = w;
        }
        y[n * channels + ch] = v;
    }
}
