// Hypotenuses of four pairs of legs a work-item. The loop stands for more work per value: each turn
// stretches the second leg a little, so no compiler can leave turns out.
__kernel void vector_hypot(__global const float4 *restrict a,
                           __global const float4 *restrict b,
                           __global float4 *restrict hypotenuse,
                           const uint offset,
                           const int turns,
                           const uint elements)
{
    const uint i = get_global_id(0) + offset;
    if (i >= elements) {
        return;
    }
    const float4 first = a[i];
    float4 second = b[i];
    float4 result = (float4)(0.0f);
    for (int k = 0; k < turns; ++k) {
        result.x = sqrt(first.x * first.x + second.x * second.x);
        result.y = sqrt(first.y * first.y + second.y * second.y);
        result.z = sqrt(first.z * first.z + second.z * second.z);
        result.w = sqrt(first.w * first.w + second.w * second.w);
        second += 0.125f * (result - second);
    }
    hypotenuse[i] = result;
}
