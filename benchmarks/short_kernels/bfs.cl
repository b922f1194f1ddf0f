kernel void bfs1(global const int *row, global const int *col, global uchar *mask,
                 global uchar *upd, global const uchar *vis, global int *cost, int n)
{
    int t = get_global_id(0);
    if (t < n && mask[t]) {
        mask[t] = 0;
        for (int i = row[t]; i < row[t + 1]; i++) {
            int id = col[i];
            if (!vis[id]) {
                cost[id] = cost[t] + 1;
                upd[id] = 1;
            }
        }
    }
}
