// The nearest of few triangles along each ray (Moeller and Trumbore), all of them tried.
kernel void nearest_hit(constant float4 *triangles, global float *depth, int count, int width, int height)
{
    int x = get_global_id(0), y = get_global_id(1);
    float3 way = normalize((float3)(x - 0.5f * width, y - 0.5f * height, 0.8f * width));
    float nearest = INFINITY;
    for (int t = 0; t < count; t++) {
        float3 a = triangles[3 * t].xyz, e = triangles[3 * t + 1].xyz - a, f = triangles[3 * t + 2].xyz - a;
        float3 p = cross(way, f);
        float det = dot(e, p);
        if (fabs(det) < 1e-7f)
            continue;
        float3 s = -a;
        float u = dot(s, p) / det;
        if (u < 0 || u > 1)
            continue;
        float3 q = cross(s, e);
        float v = dot(way, q) / det;
        if (v >= 0 && u + v <= 1)
            nearest = fmin(nearest, fabs(dot(f, q) / det));
    }
    depth[y * width + x] = fmin(nearest, 1e9f);
}
