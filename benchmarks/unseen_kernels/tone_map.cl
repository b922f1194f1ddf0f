// Filmic tone curve, gamma and ordered dither of an HDR frame, in 16 byte pixels; strides by the grid.
constant uchar bayer[16] = {0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5};

float4 curve(float4 c)
{
    return clamp(c * (2.51f * c + 0.03f) / (c * (2.43f * c + 0.59f) + 0.14f), 0.0f, 1.0f);
}

kernel void tone_map(global const float4 *hdr, global uint *sdr, float exposure, uint width, uint count)
{
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {
        float4 c = pow(curve(hdr[i] * exposure), (float4)(1.0f / 2.2f));
        float d = bayer[((i / width) & 3) * 4 + (i & 3)] * (1.0f / 16);
        uint4 q = convert_uint4(c * 255.0f + d);
        sdr[i] = q.x | q.y << 8 | q.z << 16 | 0xff000000u;
    }
}
