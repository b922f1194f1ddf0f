// Render spheres over a plane by sphere tracing, with one light and soft shadows.

float scene_distance(float3 p, __constant float *spheres, int count)
{
    float nearest = p.y + 1.0f;
    for (int i = 0; i < count; ++i) {
        const float4 s = vload4(i, spheres);
        nearest = fmin(nearest, length(p - s.xyz) - s.w);
    }
    return nearest;
}

float light_reaching(float3 from, float3 towards, __constant float *spheres, int count)
{
    float light = 1.0f;
    float t = 0.05f;
    for (int step = 0; step < 48 && t < 6.0f; ++step) {
        const float d = scene_distance(from + t * towards, spheres, count);
        if (d < 0.002f)
            return 0.0f;
        light = fmin(light, 8.0f * d / t);
        t += d;
    }
    return light;
}

__kernel void sphere_tracing(__global float *brightness, __global float *depth,
                             __constant float *spheres, const int sphere_count,
                             const int width, const int height)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const float3 eye = (float3)(0.0f, 0.6f, -4.0f);
    const float3 ray = normalize((float3)((2.0f * x - width) / height,
                                          (height - 2.0f * y) / height, 1.6f));
    const float3 sun = normalize((float3)(0.5f, 0.8f, -0.4f));

    float t = 0.0f;
    bool hit = false;
    for (int step = 0; step < 96 && t < 20.0f; ++step) {
        const float d = scene_distance(eye + t * ray, spheres, sphere_count);
        if (d < 0.001f) {
            hit = true;
            break;
        }
        t += d;
    }

    float value = 0.1f;
    if (hit) {
        const float3 p = eye + t * ray;
        const float h = 0.01f;
        const float3 n = normalize((float3)(
            scene_distance(p + (float3)(h, 0, 0), spheres, sphere_count)
                - scene_distance(p - (float3)(h, 0, 0), spheres, sphere_count),
            scene_distance(p + (float3)(0, h, 0), spheres, sphere_count)
                - scene_distance(p - (float3)(0, h, 0), spheres, sphere_count),
            scene_distance(p + (float3)(0, 0, h), spheres, sphere_count)
                - scene_distance(p - (float3)(0, 0, h), spheres, sphere_count)));
        const float facing = fmax(dot(n, sun), 0.0f);
        value = 0.2f;
        if (facing > 0.0f)
            value += 0.8f * facing * light_reaching(p + 0.02f * n, sun, spheres, sphere_count);
    }
    brightness[y * width + x] = value;
    depth[y * width + x] = hit ? t : 20.0f;
}
