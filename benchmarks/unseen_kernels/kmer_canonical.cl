/* Canonical 21-mers at 16 places in a row per work-item, rolling, both strands at once. */
__kernel void kmers(__global const char *bases, __global ulong *codes, uint length)
{
    const uint K = 21, begin = 16 * (uint)get_global_id(0);
    const ulong mask = (1UL << (2 * K)) - 1;
    ulong forward = 0, backward = 0;
    for (uint i = 0; i < K + 15; i++) {
        uint p = begin + i;
        ulong base = p < length ? (bases[p] >> 1) & 3 : 0;
        forward = (forward << 2 | base) & mask;
        backward = backward >> 2 | (base ^ 2) << (2 * K - 2);
        if (i >= K - 1 && p < length)
            codes[p - K + 1] = min(forward, backward);
    }
}
