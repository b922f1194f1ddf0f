// Takes out a lens's distortion: a linear look-up in an image per pixel.
constant sampler_t smooth_edges = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

kernel void lens(read_only image2d_t photo, global float4 *flat_photo, float k1, float k2)
{
    int2 size = get_image_dim(photo);
    int x = get_global_id(0), y = get_global_id(1);
    float2 centre = convert_float2(size) * 0.5f;
    float2 p = ((float2)(x, y) - centre) / centre.x;
    float r2 = dot(p, p);
    float2 q = p * (1 + r2 * (k1 + k2 * r2)) * centre.x + centre + 0.5f;
    flat_photo[y * size.x + x] = read_imagef(photo, smooth_edges, q);
}
