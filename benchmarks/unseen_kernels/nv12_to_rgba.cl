/* NV12 (luma, then interleaved chroma at half resolution) to RGBA, BT.709, limited range. */
__kernel void nv12_to_rgba(__global const uchar *luma, __global const uchar2 *chroma,
                           __global uchar4 *rgba, uint pitch, uint width, uint height)
{
    const uint x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    const int c = 298 * ((int)luma[y * pitch + x] - 16) + 128;
    const int2 uv = convert_int2(chroma[(y >> 1) * (pitch >> 1) + (x >> 1)]) - 128;
    const int4 p = (int4)(c + 459 * uv.y, c - 55 * uv.x - 136 * uv.y, c + 541 * uv.x, 255 << 8);
    rgba[y * width + x] = convert_uchar4_sat(p >> 8);
}
