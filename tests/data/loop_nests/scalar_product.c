double a[N], b[N], s;

for (int i = 0; i < N; ++i)
    s += a[i] * b[i];
