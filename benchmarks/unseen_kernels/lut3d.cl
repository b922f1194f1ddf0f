/* Colour grading: trilinear look-up of every pixel in a cube of colours. */
inline float4 at(__global const float4 *cube, int3 p, int n)
{
    return cube[(p.z * n + p.y) * n + p.x];
}

__kernel void lut3d(__global const uchar4 *in, __global uchar4 *out, __global const float4 *cube, int n)
{
    size_t i = get_global_id(0);
    float4 c = convert_float4(in[i]) * ((n - 1) / 255.0f);
    int3 b = min(convert_int3(c.xyz), n - 2);
    float3 f = c.xyz - convert_float3(b);
    float4 v = 0.0f;
    for (int k = 0; k < 8; k++) {
        int3 d = (int3)(k & 1, k >> 1 & 1, k >> 2);
        float3 w = select(1.0f - f, f, d != 0);
        v += w.x * w.y * w.z * at(cube, b + d, n);
    }
    out[i] = convert_uchar4_sat_rte(v);
}
