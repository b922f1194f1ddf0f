double x[N], l[N][N];

for (int j = 1; j < N; ++j)
    for (int i = 0; i < j; ++i)
        x[j] -= l[j][i] * x[i];
