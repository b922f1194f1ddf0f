kernel void km(global const float *x, global const float *c, global int *m, int n, int K, int D)
{
    int i = get_global_id(0);
    float best = FLT_MAX;
    int bi = 0;
    for (int k = 0; k < K; k++) {
        float s = 0;
        for (int j = 0; j < D; j++) {
            float t = x[j * n + i] - c[k * D + j];
            s += t * t;
        }
        if (s < best) {
            best = s;
            bi = k;
        }
    }
    m[i] = bi;
}
