#pragma OPENCL EXTENSION cl_khr_fp64 : enable

kernel void syrk(global const double *A, global double *C, int n, int m)
{
    int j = get_global_id(0), i = get_global_id(1);
    if (j <= i) {
        double s = C[i * n + j] * 0.3;
        for (int k = 0; k < m; k++)
            s += 1.1 * A[i * m + k] * A[j * m + k];
        C[i * n + j] = s;
    }
}
