/* Looks for the number whose MD5 has given first words: 16 tries per work-item, hardly any memory. */
__constant uint shifts[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

uint2 md5(uint first, uint second)
{
    uint m[16] = {first, second, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0};
    uint a = 0x67452301u, b = 0xefcdab89u, c = 0x98badcfeu, d = 0x10325476u;
    for (uint i = 0; i < 64; i++) {
        uint f, g;
        if (i < 16) { f = bitselect(d, c, b); g = i; }
        else if (i < 32) { f = bitselect(c, b, d); g = (5 * i + 1) & 15; }
        else if (i < 48) { f = b ^ c ^ d; g = (3 * i + 5) & 15; }
        else { f = c ^ (b | ~d); g = (7 * i) & 15; }
        uint k = (uint)(fabs(sin((float)(i + 1))) * 4294967040.0f);
        uint t = d;
        d = c;
        c = b;
        b += rotate(a + f + k + m[g], shifts[(i >> 4) * 4 + (i & 3)]);
        a = t;
    }
    return (uint2)(a + 0x67452301u, b + 0xefcdab89u);
}

__kernel void md5_search(__global uint *found, uint prefix, uint wanted)
{
    uint base = (uint)get_global_id(0) * 16;
    for (uint t = 0; t < 16; t++)
        if (md5(prefix, base + t).x == wanted)
            *found = base + t;
}
