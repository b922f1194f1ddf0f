// Two kernels of which we know what a truthful driver says: that they differ in private memory,
// and that a work-group of the required size fits. PoCL says 1,024 bytes of private memory for
// every kernel; rusticl says 32 work-items at most, also where it must run more, and does.
kernel __attribute__((reqd_work_group_size(KC_ITEMS, 1, 1))) void kc_plain(global float *values)
{
    values[get_global_id(0)] *= 2.0f;
}

kernel void kc_array(global float *values, int place)
{
    float kept[256];
    for (int i = 0; i < 256; ++i)
        kept[i] = values[(i * place) % 1000];
    values[get_global_id(0)] = kept[kept[place & 255] > 0.0f ? 7 : place & 127];
}
