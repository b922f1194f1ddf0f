kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int d = x - 7;
  a[AT(d / 4)] = 1;
  a[AT(d % 4)] = 2;
  a[AT(d / -3)] = 1;
  a[AT((x + m) / 5)] = 1;
  a[AT((m * x) % 7)] = 3; }
