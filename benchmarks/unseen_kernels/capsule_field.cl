// Distances of a grid of three dimensions from bones of a body, smoothly joined.
kernel void distances(constant float8 *bones, global float *field, int count, float cell)
{
    size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    float3 p = (float3)(x, y, z) * cell;
    float sum = 0.0f;
    for (int i = 0; i < count; i++) {
        float3 a = bones[i].s012, b = bones[i].s456 - a, q = p - a;
        float along = clamp(dot(q, b) / dot(b, b), 0.0f, 1.0f);
        sum += native_exp(-32.0f * (fast_length(q - along * b) - bones[i].s3));
    }
    field[(z * get_global_size(1) + y) * get_global_size(0) + x] = -log(sum + 1e-30f) / 32.0f;
}
