kernel void kc_probe(global volatile int *counters, global float *sink, int steps,
                     local uchar *ballast)
{
    if (get_local_id(0) == 0) {
        ballast[0] = 1;
        atomic_inc(&counters[0]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float x = (float)get_global_id(0);
    for (int i = 0; i < steps; ++i)
        x = x * 0.999f + 0.5f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0) {
        atomic_max(&counters[1], counters[0]);
        atomic_dec(&counters[0]);
    }
    if (x == -1.0f)
        *sink = x + ballast[0];
}
