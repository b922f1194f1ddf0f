double a[N], s;

for (int i = 0; i < N; ++i)
    s = s + a[i];
