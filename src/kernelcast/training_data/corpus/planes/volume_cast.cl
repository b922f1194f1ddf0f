// A picture of glowing fog from afar: a ray goes through the layers of a volume, aslant by so many
// 256ths of a cell a layer, and collects light until hardly any comes through. Rays stay at the edge
// that they meet.
__kernel void volume_cast(__global const uchar *restrict fog, __global float *restrict picture,
                          const int depth, const int slant_x, const int slant_y)
{
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const size_t layer = (size_t)width * height;
    float light = 0.0f;
    float clear = 1.0f;
    for (int z = 0; z < depth && clear > 0.02f; ++z) {
        const int at_x = clamp(x + ((z * slant_x) >> 8), 0, width - 1);
        const int at_y = clamp(y + ((z * slant_y) >> 8), 0, height - 1);
        const float density = fog[z * layer + (size_t)at_y * width + at_x] * (1.0f / 512.0f);
        light += clear * density * (1.0f + density);
        clear *= 1.0f - density;
    }
    picture[(size_t)y * width + x] = light;
}
