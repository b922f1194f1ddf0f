// Four bytes of parity for 32 bytes of data in GF(256), without tables; a stripe per work-item.
uchar times(uchar a, uchar b)
{
    uchar p = 0;
    for (int i = 0; i < 8; i++) {
        p ^= b & 1 ? a : 0;
        a = (uchar)(a << 1) ^ (a & 0x80 ? 0x1d : 0);
        b >>= 1;
    }
    return p;
}

kernel void rs_encode(global const uchar *data, global uchar4 *parity, constant uchar4 *generator,
                      unsigned stripes)
{
    unsigned s = get_global_id(0);
    uchar4 rest = 0;
    for (unsigned i = 0; i < 32; i++) {
        uchar feedback = data[i * stripes + s] ^ rest.x;
        uchar4 g = *generator;
        rest = (uchar4)(rest.yzw, 0) ^ (uchar4)(times(feedback, g.x), times(feedback, g.y),
                                                times(feedback, g.z), times(feedback, g.w));
    }
    parity[s] = rest;
}
