// An option on the mean price along a path: every work-item follows a path of its own, two normally
// distributed steps at a time (Box and Muller), with a shift-register generator of 128 bits
// (Marsaglia, 2003). A work-group adds up payoffs and their squares.
inline uint draw(uint4 *state)
{
    const uint mixed = state->x ^ (state->x << 11);
    state->x = state->y;
    state->y = state->z;
    state->z = state->w;
    state->w = state->w ^ (state->w >> 19) ^ mixed ^ (mixed >> 8);
    return state->w;
}

inline float2 draw_normal(uint4 *state)
{
    // upper 23 bits and a half: never 0
    const float radius = sqrt(-2.0f * log(((draw(state) >> 9) + 0.5f) * 0x1p-23f));
    const float angle = (draw(state) >> 9) * (6.2831853f * 0x1p-23f);
    float cosine;
    const float sine = sincos(angle, &cosine);
    return (float2)(radius * cosine, radius * sine);
}

__kernel void asian_option(__global float2 *restrict sums, const int step_pairs, const float drift,
                           const float volatility, const float strike, const uint seed,
                           __local float2 *shares)
{
    const uint path = get_global_id(0);
    const int lane = get_local_id(0);
    uint4 state = (uint4)(path * 1099087573u + seed, path ^ 0x9e3779b9u, path + 0x7f4a7c15u, seed);
    float price_log = 0.0f;
    float total = 0.0f;
    for (int i = 0; i < step_pairs; ++i) {
        const float2 normal = draw_normal(&state);
        price_log += drift + volatility * normal.x;
        total += exp(price_log);
        price_log += drift + volatility * normal.y;
        total += exp(price_log);
    }
    const float payoff = fmax(total / (2 * step_pairs) - strike, 0.0f);
    shares[lane] = (float2)(payoff, payoff * payoff);
    for (int reach = get_local_size(0) / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < reach) {
            shares[lane] += shares[lane + reach];
        }
    }
    if (lane == 0) {
        sums[get_group_id(0)] = shares[0];
    }
}
