/* Which points see the sky: rays through a hierarchy of boxes of spheres, with a stack. */
typedef struct { float4 low, high; } box;

__kernel void occlusion(__global const box *nodes, __global const float4 *spheres, __global uchar *is_lit,
                        __global const float4 *points, int inner)
{
    int i = get_global_id(0), stack[32], top = 0;
    float3 from = points[i].xyz, way = normalize((float3)(0.3f, 0.4f, 0.8f));
    uchar lit = 1;
    stack[top++] = 0;
    while (top && lit) {
        int node = stack[--top];
        if (node >= inner) {
            float4 s = spheres[node - inner];
            float3 d = s.xyz - from;
            float along = dot(d, way);
            if (along > 0 && dot(d, d) - along * along < s.w * s.w)
                lit = 0;
            continue;
        }
        float3 a = (nodes[node].low.xyz - from) / way, b = (nodes[node].high.xyz - from) / way;
        float3 near = fmin(a, b), far = fmax(a, b);
        if (fmax(fmax(near.x, near.y), fmax(near.z, 0.0f)) <= fmin(fmin(far.x, far.y), far.z)) {
            stack[top++] = 2 * node + 2;
            stack[top++] = 2 * node + 1;
        }
    }
    is_lit[i] = lit;
}
