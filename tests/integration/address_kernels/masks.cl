kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  a[AT(x & 5)] = 1;
  a[AT(x & ~3)] = 2;
  a[AT((x - 6) & 6)] = 3;
  a[AT(x | 5)] = 4;
  a[AT(x ^ 9)] = 5;
  a[AT(~x & 15)] = 6;
  a[AT((x - 3) ^ 1)] = 7;
  a[AT((x << 3) | (y & 7))] = 8;
  a[AT((m ^ -1) & 0xf0)] = 9;
  a[AT((m | 6) & 31)] = 1;
  a[AT(x & (n - 1))] = 2;
  a[AT(x ^ u)] = 3;
  a[AT((m & n) | y)] = 4;
  a[AT(-(x < n) & (y ^ n))] = 5;
  a[AT((3 * x | n) ^ (u << y))] = 6; }
