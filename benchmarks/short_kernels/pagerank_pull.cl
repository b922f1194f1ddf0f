kernel void pr(global const int *row, global const int *col, global const float *r,
               global const int *deg, global float *o, int n)
{
    int v = get_global_id(0);
    float s = 0;
    for (int e = row[v]; e < row[v + 1]; e++) {
        int u = col[e];
        s += r[u] / max(deg[u], 1);
    }
    o[v] = 0.15f / n + 0.85f * s;
}
