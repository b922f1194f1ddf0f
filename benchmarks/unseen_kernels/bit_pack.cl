/* Frame-of-reference packing: 32 numbers of a column become `bits` words, a frame per work-item. */
__kernel void bit_pack(__global const int *column, __global uint *packed, __global int *least, int bits)
{
    int frame = get_global_id(0), low = INT_MAX;
    __global const int *v = column + 32 * frame;
    for (int i = 0; i < 32; i++)
        low = min(low, v[i]);
    ulong pending = 0;
    int held = 0, word = frame * bits;
    for (int i = 0; i < 32; i++) {
        pending |= (ulong)((uint)(v[i] - low) & ((1u << bits) - 1)) << held;
        held += bits;
        if (held >= 32) {
            packed[word++] = (uint)pending;
            pending >>= 32;
            held -= 32;
        }
    }
    least[frame] = low;
}
