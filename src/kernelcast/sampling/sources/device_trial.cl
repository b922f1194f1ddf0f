kernel void kc_trial(global float *out, int steps, global const uchar *memory, ulong apart,
                     ulong places, ulong each)
{
    ulong item = get_global_id(0);
    if (each == 0) {
        if (places != 0 && get_local_id(0) == 0) {
            global int *taken = (global int *)(out + get_global_size(0));
            taken[1 + get_group_id(0)] = atomic_inc(taken);
        }
        float x = (float)item;
        int own = places == 0 || item < places ? steps : 0;
        for (int i = 0; i < own; ++i)
            x = x * 0.5f + 1.0f;
        out[item] = x;
    } else {
        uint sum = 0;
        for (ulong i = item * each; i < min((item + 1) * each, places); ++i)
            sum += memory[i * apart];
        if (sum == 0xffffffffu)
            out[0] = sum;
    }
}

kernel void kc_local_memory(global int *sink)
{
    local int staged[256];
    staged[get_local_id(0) % 256] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    sink[0] = staged[0];
}
