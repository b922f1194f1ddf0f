// Prices European call options on binomial trees: a work-group holds one level of the tree for
// four options and folds it back to the root, a barrier before and after each level. The two
// levels at work alternate between two arrays, so that no work-item overwrites what another reads.
#define RISK_FREE 0.02f
#define VOLATILITY 0.30f

__kernel void binomial(__global const float4 *restrict samples,
                       __global float4 *restrict prices,
                       const int steps,
                       __local float4 *level,
                       __local float4 *next_level)
{
    const int node = get_local_id(0);
    const int option = get_group_id(0);

    const float4 sample = samples[option];
    const float4 stock = 5.0f * (1.0f - sample) + 30.0f * sample;
    const float4 strike = 1.0f * (1.0f - sample) + 100.0f * sample;
    const float4 years = 0.25f * (1.0f - sample) + 10.0f * sample;

    const float4 time_step = years / (float)steps;
    const float4 spread = VOLATILITY * sqrt(time_step);
    const float4 growth = exp(RISK_FREE * time_step);
    const float4 discount = 1.0f / growth;
    const float4 up = exp(spread);
    const float4 down = 1.0f / up;
    const float4 chance_up = (growth - down) / (up - down);
    const float4 weight_up = chance_up * discount;
    const float4 weight_down = (1.0f - chance_up) * discount;

    const float4 at_expiry = stock * exp(spread * (2.0f * node - steps));
    level[node] = fmax(at_expiry - strike, 0.0f);
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int width = steps; width > 0; width -= 2) {
        if (node < width) {
            next_level[node] = weight_up * level[node + 1] + weight_down * level[node];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (node < width - 1) {
            level[node] = weight_up * next_level[node + 1] + weight_down * next_level[node];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (node == 0) {
        prices[option] = level[0];
    }
}
