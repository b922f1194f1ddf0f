// Finds keys in a B-tree of 16 keys a node, from the root down; nodes lie level by level.
kernel void btree(global const uint16 *nodes, global const uint *asked, global uint *places, int levels)
{
    size_t q = get_global_id(0);
    uint key = asked[q];
    size_t node = 0;
    for (int level = 0; level < levels; level++) {
        int16 less = nodes[node] < (uint16)key;
        int8 a = less.lo + less.hi;
        int4 b = a.lo + a.hi;
        int slot = -(b.x + b.y + b.z + b.w);
        node = node * 17 + 1 + slot;
    }
    places[q] = (uint)node;
}
