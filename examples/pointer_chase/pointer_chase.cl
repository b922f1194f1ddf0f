// Each work-item follows a permutation for STEPS steps: every load waits for the one before it.
__kernel void pointer_chase(__global const uint *restrict next,
                            __global uint *restrict last,
                            const int steps)
{
    const uint i = get_global_id(0);
    uint place = i;
    for (int step = 0; step < steps; ++step) {
        place = next[place];
    }
    last[i] = place;
}
