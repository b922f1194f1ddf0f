kernel void mvt(global const float *A, global float *x, global const float *y, int n)
{
    int i = get_global_id(0);
    float s = x[i];
    for (int j = 0; j < n; j++)
        s += A[j * n + i] * y[j];
    x[i] = s;
}
