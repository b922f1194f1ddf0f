double a[N], b[N], c[N], t;

for (int i = 0; i < N; ++i) {
    if (a[i] > t)
        c[i] = a[i] * b[i];
    else
        c[i] = 0;
}
