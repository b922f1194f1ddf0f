kernel void tri(global const int *ord, global const int *row, global const int *col,
                global const float *v, global float *x, global const float *b, int lo, int hi)
{
    int k = lo + get_global_id(0);
    if (k < hi) {
        int i = ord[k];
        float s = b[i];
        for (int e = row[i]; e < row[i + 1] - 1; e++)
            s -= v[e] * x[col[e]];
        x[i] = s / (v[row[i + 1] - 1] + 1.f);
    }
}
