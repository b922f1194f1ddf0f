// One compare-and-exchange step of a bitonic sort of keys with payloads.

__kernel void bitonic_step(__global uint *keys, __global uint *payloads, const uint distance,
                           const uint block)
{
    const uint i = get_global_id(0);
    const uint low = (i / distance) * 2 * distance + i % distance;
    const uint high = low + distance;
    const bool ascending = (low & block) == 0;

    const uint a = keys[low];
    const uint b = keys[high];
    if ((a > b) == ascending) {
        keys[low] = b;
        keys[high] = a;
        const uint p = payloads[low];
        payloads[low] = payloads[high];
        payloads[high] = p;
    }
}
