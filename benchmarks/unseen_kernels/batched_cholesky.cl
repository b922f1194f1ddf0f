// Cholesky factors of many matrices of 12 by 12, interleaved; a matrix per work-item, in registers.
#define M 12
kernel void cholesky(global const float *matrices, global float *factors, int count)
{
    int b = get_global_id(0);
    float l[M][M];
    for (int i = 0; i < M; i++)
        for (int j = 0; j <= i; j++) {
            float s = matrices[(i * M + j) * count + b];
            for (int k = 0; k < j; k++)
                s -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(s) : s / l[j][j];
            factors[(i * M + j) * count + b] = l[i][j];
        }
}
