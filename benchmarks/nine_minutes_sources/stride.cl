
kernel void kc_stride(global const float *from, global float *to)
{
    uint at = get_local_id(0) * STRIDE;
    float sum = 0.0f;
    for (int i = 0; i < STEPS; ++i) {
        sum += from[at & 4095];
        at += 256 * STRIDE + 1;
    }
    to[get_global_id(0)] = sum;
}
