kernel void pic(global const float *x, global int *rho, int g, int n)
{
    int i = get_global_id(0);
    float p = x[i] * (g - 2);
    int c = (int)p;
    int w = (int)((p - c) * 1024);
    atomic_add(&rho[c], 1024 - w);
    atomic_add(&rho[c + 1], w);
}
