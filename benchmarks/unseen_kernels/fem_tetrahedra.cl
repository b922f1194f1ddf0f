// Stiffness matrices of linear tetrahedra for Poisson's equation, an element per work-item.
kernel void assemble(global const int4 *corners, global const float *x, global const float *y,
                     global const float *z, global float *stiffness, int elements)
{
    int e = get_global_id(0);
    if (e >= elements)
        return;
    int4 c = corners[e];
    float3 p0 = (float3)(x[c.x], y[c.x], z[c.x]);
    float3 a = (float3)(x[c.y], y[c.y], z[c.y]) - p0;
    float3 b = (float3)(x[c.z], y[c.z], z[c.z]) - p0;
    float3 d = (float3)(x[c.w], y[c.w], z[c.w]) - p0;
    float3 g[4];
    float volume6 = dot(a, cross(b, d));
    g[1] = cross(b, d) / volume6;
    g[2] = cross(d, a) / volume6;
    g[3] = cross(a, b) / volume6;
    g[0] = -(g[1] + g[2] + g[3]);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j <= i; j++)
            stiffness[(i * (i + 1) / 2 + j) * elements + e] = fabs(volume6) / 6 * dot(g[i], g[j]);
}
