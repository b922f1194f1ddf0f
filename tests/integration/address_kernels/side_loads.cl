kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  if (x > 0 &&
  a[AT(x - 1)] >= 0 &&
  a[AT(x + 1)] > 5)
  a[AT(x)] = a[0]; }
