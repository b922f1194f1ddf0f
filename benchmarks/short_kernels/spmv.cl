kernel void spmv(global const int *row, global const int *col, global const float *v,
                 global const float *x, global float *y, int n)
{
    int i = get_global_id(0);
    if (i < n) {
        float s = 0;
        for (int k = row[i]; k < row[i + 1]; k++)
            s += v[k] * x[col[k]];
        y[i] = s;
    }
}
