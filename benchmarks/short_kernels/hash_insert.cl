kernel void ins(global uint *t, global const uint *q, uint mask)
{
    int i = get_global_id(0);
    uint k = q[i], p = (k * 2654435761u) & mask;
    while (1) {
        uint o = atomic_cmpxchg(&t[p], 0u, k);
        if (o == 0u || o == k)
            break;
        p = (p + 1) & mask;
    }
}
