// x = a * x + b, STEPS times over, in place: running the kernel twice is not running it once.
// A work-item keeps ELEMENTS neighbours in registers.
__kernel void damp(__global float *restrict x,
                   __global const float *restrict b,
                   const float a,
                   const uint count,
                   const uchar steps)
{
    const uint begin = get_global_id(0) * ELEMENTS;
    if (begin + ELEMENTS > count) {
        return;
    }
    float value[ELEMENTS];
    float force[ELEMENTS];
    for (int e = 0; e < ELEMENTS; ++e) {
        value[e] = x[begin + e];
        force[e] = b[begin + e];
    }
    for (uchar step = 0; step < steps; ++step) {
        for (int e = 0; e < ELEMENTS; ++e) {
            value[e] = a * value[e] + force[e];
        }
    }
    for (int e = 0; e < ELEMENTS; ++e) {
        x[begin + e] = value[e];
    }
}
