kernel void bit(global uint *a, uint j, uint k)
{
    uint i = get_global_id(0), x = i ^ j;
    if (x > i) {
        uint p = a[i], q = a[x];
        int up = (i & k) == 0;
        if ((p > q) == up) {
            a[i] = q;
            a[x] = p;
        }
    }
}
