// y += A x with A as a list of entries sorted by rows. A work-item takes eight of them that follow
// each other and adds its sum to y whenever the row changes; rows of many entries are in demand.
#define ENTRIES 8

inline void add_atomically(volatile __global float *place, const float value)
{
    uint before;
    uint after;
    do {
        const float seen = *place;
        before = as_uint(seen);
        after = as_uint(seen + value);
    } while (atomic_cmpxchg((volatile __global uint *)place, before, after) != before);
}

__kernel void spmv_coo(__global const int *restrict rows, __global const int *restrict columns,
                       __global const float *restrict entries, __global const float *restrict x,
                       volatile __global float *y, const int entry_count)
{
    const int begin = get_global_id(0) * ENTRIES;
    const int end = min(begin + ENTRIES, entry_count);
    if (begin >= end) {
        return;
    }
    int row = rows[begin];
    float sum = 0.0f;
    for (int i = begin; i < end; ++i) {
        if (rows[i] != row) {
            add_atomically(y + row, sum);
            row = rows[i];
            sum = 0.0f;
        }
        sum += entries[i] * x[columns[i]];
    }
    add_atomically(y + row, sum);
}
