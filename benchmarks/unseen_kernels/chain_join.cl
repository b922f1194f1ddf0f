/* Hash join: walks the chain of a bucket for each row of the larger table and counts its partners. */
typedef struct { uint key; int next; } entry;

__kernel void chain_join(__global const uint *probe, __global const int *heads, __global const entry *built,
                         __global int *partners, uint mask)
{
    size_t row = get_global_id(0);
    uint key = probe[row];
    int found = 0;
    for (int e = heads[(key * 0x9e3779b1u >> 7) & mask]; e >= 0; e = built[e].next)
        found += built[e].key == key;
    partners[row] = found;
}
