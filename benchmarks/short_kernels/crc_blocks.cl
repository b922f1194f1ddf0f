kernel void crc(global const uchar *d, constant uint *t, global uint *o, int b)
{
    int i = get_global_id(0);
    uint c = ~0u;
    for (int k = 0; k < b; k++)
        c = t[(c ^ d[i * b + k]) & 255] ^ (c >> 8);
    o[i] = ~c;
}
