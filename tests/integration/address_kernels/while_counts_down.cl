kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int e = n; while (e--)
  a[AT(e)] = 1;
  a[AT(e + 9)] = 2;
  int f = x; while (f-- > 2)
  a[AT(f)] = 1;
  a[AT(f + 20)] = 3; }
