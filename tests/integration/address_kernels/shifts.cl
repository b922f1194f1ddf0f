kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int d = x - 7;
  a[AT(d >> 2)] = 1;
  a[AT(x << 3)] = 2;
  a[AT((1 << (x & 7)))] = 1;
  a[AT(n >> (x & 3))] = 2;
  a[AT(-x >> 1)] = 2; }
