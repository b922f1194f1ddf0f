#define T 16

kernel void gemmt(global const float *A, global const float *Bm, global float *C, int n)
{
    local float a[T][T], b[T][T];
    int lx = get_local_id(0), ly = get_local_id(1), x = get_global_id(0), y = get_global_id(1);
    float s = 0;
    for (int t = 0; t < n / T; t++) {
        a[ly][lx] = A[y * n + t * T + lx];
        b[ly][lx] = Bm[(t * T + ly) * n + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < T; k++)
            s += a[ly][k] * b[k][lx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[y * n + x] = s;
}
