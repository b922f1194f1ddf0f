kernel void push(global float2 *p, global const float *e, float dt, int g)
{
    int i = get_global_id(0);
    float2 q = p[i];
    float s = q.x * (g - 2);
    int c = (int)s;
    float w = s - c;
    float f = e[c] * (1 - w) + e[c + 1] * w;
    q.y += dt * f;
    q.x += dt * q.y * 1e-3f;
    q.x -= floor(q.x);
    p[i] = q;
}
