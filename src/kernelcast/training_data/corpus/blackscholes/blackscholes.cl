// Call and put prices by the formula of Black and Scholes, the normal distribution by a polynomial
// of fifth degree. Work-items stride over the options by the size of the launch.
inline float cumulative_normal(const float x)
{
    const float k = 1.0f / (1.0f + 0.2316419f * fabs(x));
    const float polynomial = k * (0.319381530f
        + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float tail = 0.39894228040143f * exp(-0.5f * x * x) * polynomial;
    return x > 0.0f ? 1.0f - tail : tail;
}

__kernel void blackscholes(__global float *restrict call_price,
                           __global float *restrict put_price,
                           __global const float *restrict stock_price,
                           __global const float *restrict strike_price,
                           __global const float *restrict years,
                           const float risk_free,
                           const float volatility,
                           const uint options)
{
    for (uint i = get_global_id(0); i < options; i += get_global_size(0)) {
        const float stock = stock_price[i];
        const float strike = strike_price[i];
        const float time = years[i];

        const float spread = volatility * sqrt(time);
        const float d1 = (log(stock / strike)
            + (risk_free + 0.5f * volatility * volatility) * time) / spread;
        const float d2 = d1 - spread;
        const float below_d1 = cumulative_normal(d1);
        const float below_d2 = cumulative_normal(d2);
        const float discounted = strike * exp(-risk_free * time);

        call_price[i] = stock * below_d1 - discounted * below_d2;
        put_price[i] = discounted * (1.0f - below_d2) - stock * (1.0f - below_d1);
    }
}
