// Count random points inside the quarter circle. All work-items share one linear congruential
// sequence: each takes every get_global_size(0)-th number of it.

#define MULTIPLIER 6364136223846793005UL
#define INCREMENT 1442695040888963407UL

// Multiplier and increment of `steps` steps at once.
void leap(ulong steps, ulong *multiplier, ulong *increment)
{
    ulong m = MULTIPLIER;
    ulong c = INCREMENT;
    *multiplier = 1;
    *increment = 0;
    for (; steps > 0; steps >>= 1) {
        if (steps & 1) {
            *multiplier *= m;
            *increment = *increment * m + c;
        }
        c *= m + 1;
        m *= m;
    }
}

__kernel void monte_carlo_pi(__global uint *inside, __local uint *scratch, const ulong seed,
                             const int draws)
{
    const int lid = get_local_id(0);
    ulong m, c;
    leap(get_global_id(0) + 1, &m, &c);
    ulong state = seed * m + c;
    leap(get_global_size(0), &m, &c);

    uint hits = 0;
    for (int i = 0; i < draws; ++i) {
        const uint x = (uint)(state >> 33);
        state = state * m + c;
        const uint y = (uint)(state >> 33);
        state = state * m + c;
        if ((ulong)x * x + (ulong)y * y < (1UL << 62))
            ++hits;
    }

    scratch[lid] = hits;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = get_local_size(0) / 2; width > 0; width /= 2) {
        if (lid < width)
            scratch[lid] += scratch[lid + width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lid == 0)
        inside[get_group_id(0)] = scratch[0];
}
