kernel void gemm(global const float *A, global const float *Bm, global float *C, float al, float be,
                 int n)
{
    int j = get_global_id(0), i = get_global_id(1);
    if (i < n && j < n) {
        float s = C[i * n + j] * be;
        for (int k = 0; k < n; k++)
            s += al * A[i * n + k] * Bm[k * n + j];
        C[i * n + j] = s;
    }
}
