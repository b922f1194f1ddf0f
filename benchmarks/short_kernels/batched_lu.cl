#define N 16

kernel void lu(global float *A)
{
    int b = get_global_id(0);
    float a[N * N];
    global float *p = A + b * N * N;
    for (int i = 0; i < N * N; i++)
        a[i] = p[i];
    for (int k = 0; k < N; k++)
        for (int i = k + 1; i < N; i++) {
            float f = a[i * N + k] / a[k * N + k];
            a[i * N + k] = f;
            for (int j = k + 1; j < N; j++)
                a[i * N + j] -= f * a[k * N + j];
        }
    for (int i = 0; i < N * N; i++)
        p[i] = a[i];
}
