kernel void cut(global const float4 *a, global float *v, int n, int at, float c2)
{
    int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    float s = 0;
    for (int i = 0; i < at; i++) {
        float4 q = a[i];
        float dx = q.x - x, dy = q.y - y, dz = q.z - z;
        float r2 = dx * dx + dy * dy + dz * dz;
        if (r2 < c2) {
            float t = 1 - r2 / c2;
            s += q.w * rsqrt(r2 + 1e-6f) * t * t;
        }
    }
    v[(z * n + y) * n + x] = s;
}
