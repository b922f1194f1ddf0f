kernel void sc(global float4 *a, float k)
{
    int i = get_global_id(0);
    a[i] = a[i] * k + 0.25f;
}
