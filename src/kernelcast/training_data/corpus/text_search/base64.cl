// Base64: a work-item turns twelve bytes, read as three words, into sixteen characters.
__constant uchar ALPHABET[64] = {
    'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P',
    'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'a', 'b', 'c', 'd', 'e', 'f',
    'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v',
    'w', 'x', 'y', 'z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '/'};

inline uint encode(const uint first, const uint second, const uint third)
{
    const uint bits = first << 16 | second << 8 | third;
    return ALPHABET[bits >> 18] | ALPHABET[bits >> 12 & 63] << 8 | ALPHABET[bits >> 6 & 63] << 16
           | (uint)ALPHABET[bits & 63] << 24;
}

__kernel void base64(__global const uint *restrict bytes, __global uint4 *restrict characters)
{
    const size_t piece = get_global_id(0);
    const uint a = bytes[3 * piece];
    const uint b = bytes[3 * piece + 1];
    const uint c = bytes[3 * piece + 2];
    characters[piece] = (uint4)(encode(a & 255, a >> 8 & 255, a >> 16 & 255),
                                encode(a >> 24, b & 255, b >> 8 & 255),
                                encode(b >> 16 & 255, b >> 24, c & 255),
                                encode(c >> 8 & 255, c >> 16 & 255, c >> 24));
}
