// The edit distance between a query of up to 32 characters and each word of a dictionary, one a
// work-item: a column of the table of distances is two vectors of bits (Myers, 1999). Bit vectors
// of the query's characters lie in local memory.
__kernel void edit_distance(__global const uchar *restrict letters,
                            __global const uint *restrict begins,
                            __global const uint *restrict query_bits,
                            __global uint *restrict distances, const uint query_length)
{
    __local uint bits[256];
    for (uint i = get_local_id(0); i < 256; i += get_local_size(0)) {
        bits[i] = query_bits[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint word = get_global_id(0);
    const uint last = 1u << (query_length - 1);
    const uint end = begins[word + 1];
    uint rising = UINT_MAX;
    uint falling = 0;
    uint distance = query_length;
    for (uint i = begins[word]; i < end; ++i) {
        const uint equal = bits[letters[i]];
        const uint diagonal = (((equal & rising) + rising) ^ rising) | equal | falling;
        uint up = falling | ~(diagonal | rising);
        uint down = rising & diagonal;
        distance += (up & last) != 0;
        distance -= (down & last) != 0;
        up = up << 1 | 1;
        down <<= 1;
        rising = down | ~(diagonal | up);
        falling = up & diagonal;
    }
    distances[word] = distance;
}
