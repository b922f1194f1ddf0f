// select key, count(*), sum(value) group by key: 512 groups gathered in local memory first.
#define GROUPS 512
kernel void group_by(global const ushort *keys, global const int *values, global uint *counts,
                     global int *totals, int rows)
{
    local uint count[GROUPS];
    local int total[GROUPS];
    int l = get_local_id(0), n = get_local_size(0);
    for (int g = l; g < GROUPS; g += n)
        count[g] = total[g] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < rows; i += get_global_size(0)) {
        atomic_inc(&count[keys[i]]);
        atomic_add(&total[keys[i]], values[i]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int g = l; g < GROUPS; g += n)
        if (count[g]) {
            atomic_add(&counts[g], count[g]);
            atomic_add(&totals[g], total[g]);
        }
}
