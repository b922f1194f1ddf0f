// European call and put prices after Black and Scholes, four options per work-item.

float4 normal_cdf(float4 x)
{
    const float4 k = 1.0f / (1.0f + 0.2316419f * fabs(x));
    const float4 poly =
        k * (0.319381530f
             + k * (-0.356563782f
                    + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float4 tail = 0.39894228f * exp(-0.5f * x * x) * poly;
    return select(1.0f - tail, tail, x < 0.0f);
}

__kernel void blackscholes(__global const float4 *price, __global const float4 *strike,
                           __global const float4 *years, __global float4 *call,
                           __global float4 *put, const float rate, const float volatility,
                           const int quads)
{
    const int i = get_global_id(0);
    if (i >= quads)
        return;
    const float4 s = price[i];
    const float4 k = strike[i];
    const float4 t = years[i];
    const float4 spread = volatility * sqrt(t);
    const float4 d1 = (log(s / k) + (rate + 0.5f * volatility * volatility) * t) / spread;
    const float4 d2 = d1 - spread;
    const float4 discounted = k * exp(-rate * t);
    const float4 n1 = normal_cdf(d1);
    const float4 n2 = normal_cdf(d2);
    call[i] = s * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}
