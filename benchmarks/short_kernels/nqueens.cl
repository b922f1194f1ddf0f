kernel void nq(global const int *s, global int *o, int n)
{
    int i = get_global_id(0);
    int r[3] = {s[3 * i], s[3 * i + 1], s[3 * i + 2]};
    if (r[0] < 0) {
        o[i] = 0;
        return;
    }
    uint full = (1u << n) - 1, c = 0, l = 0, d = 0;
    for (int k = 0; k < 3; k++) {
        uint b = 1u << r[k];
        c |= b;
        l = (l | b) << 1;
        d = (d | b) >> 1;
    }
    uint sc[16], sl[16], sd[16], sf[16];
    int sp = 0, cnt = 0;
    sc[0] = c;
    sl[0] = l;
    sd[0] = d;
    sf[0] = full & ~(c | l | d);
    while (sp >= 0) {
        uint f = sf[sp];
        if (!f) {
            sp--;
            continue;
        }
        uint b = f & -f;
        sf[sp] ^= b;
        uint nc = sc[sp] | b;
        if (nc == full) {
            cnt++;
            continue;
        }
        uint nl = (sl[sp] | b) << 1, nd = (sd[sp] | b) >> 1;
        sp++;
        sc[sp] = nc;
        sl[sp] = nl;
        sd[sp] = nd;
        sf[sp] = full & ~(nc | nl | nd);
    }
    o[i] = cnt;
}
