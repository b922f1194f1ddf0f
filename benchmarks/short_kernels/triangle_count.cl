kernel void tc(global const int *row, global const int *col, global int *cnt, int n)
{
    int v = get_global_id(0);
    int c = 0;
    for (int e = row[v]; e < row[v + 1]; e++) {
        int u = col[e];
        if (u <= v)
            continue;
        int i = row[v], j = row[u];
        while (i < row[v + 1] && j < row[u + 1]) {
            int a = col[i], b = col[j];
            if (a == b) {
                c++;
                i++;
                j++;
            } else if (a < b)
                i++;
            else
                j++;
        }
    }
    cnt[v] = c;
}
