kernel void hook(global const int *s, global const int *d, global int *p, int m)
{
    int e = get_global_id(0);
    int a = s[e], b = d[e];
    while (p[a] != a)
        a = p[a];
    while (p[b] != b)
        b = p[b];
    if (a != b)
        atomic_min(&p[max(a, b)], min(a, b));
}
