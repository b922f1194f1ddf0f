kernel void probe(global const uint *t, global const uint *q, global int *o, uint mask)
{
    int i = get_global_id(0);
    uint k = q[i], p = (k * 2654435761u) >> 11;
    int r = -1;
    while (t[p]) {
        if (t[p] == k) {
            r = p;
            break;
        }
        p = (p + 1) & mask;
    }
    o[i] = r;
}
