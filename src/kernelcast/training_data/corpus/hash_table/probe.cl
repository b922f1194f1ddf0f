// Looks keys up in an open hash table: from a key's slot on, up to the first empty one. Runs of
// full slots are of very uneven length. A slot holds a key, 0 if it is empty, and a value.
inline uint find_slot(const uint key, const uint slots)
{
    return mul_hi(key * 2654435769u, slots);
}

__kernel void probe(__global const uint *restrict keys, __global const uint2 *restrict table,
                    __global uint *restrict found, const uint slots)
{
    const uint key = keys[get_global_id(0)];
    uint slot = find_slot(key, slots);
    uint2 pair = table[slot];
    while (pair.x != 0 && pair.x != key) {
        ++slot;
        pair = table[slot];
    }
    found[get_global_id(0)] = pair.x == key ? pair.y : UINT_MAX;
}
