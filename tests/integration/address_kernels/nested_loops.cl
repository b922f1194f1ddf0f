kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  for (int i = 0; i < n; i++) for (int j = i; j < n; j += 3)
  a[AT(i * n + j + x)] = 1; }
