kernel void sssp(global const int *row, global const int *col, global const int *w,
                 global int *dist, global int *flag, int n)
{
    int v = get_global_id(0);
    if (v >= n)
        return;
    int d = dist[v];
    if (d >= (1 << 29))
        return;
    for (int e = row[v]; e < row[v + 1]; e++) {
        int nd = d + w[e];
        if (nd < atomic_min(&dist[col[e]], nd))
            flag[0] = 1;
    }
}
