// Inserts keys into an open hash table, where 0 marks an empty slot. A key that meets a lesser one
// takes its slot, and the lesser one goes on to the next: whichever work-item comes first, the
// table becomes the same. Keys that are present are left alone.
inline uint find_slot(const uint key, const uint slots)
{
    return mul_hi(key * 2654435769u, slots);
}

__kernel void insert(__global const uint *restrict keys, volatile __global uint *table,
                     const uint slots)
{
    uint key = keys[get_global_id(0)];
    uint slot = find_slot(key, slots);
    while (true) {
        const uint found = atomic_max(table + slot, key);
        if (found == 0 || found == key) {
            break;
        }
        key = min(found, key);
        slot = slot + 1 == slots ? 0 : slot + 1;
    }
}
