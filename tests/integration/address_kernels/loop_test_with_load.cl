kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  int i = 0; while (i < n &&
  a[AT(i)] < 55) i++;
  a[AT(i)] = a[0]; }
