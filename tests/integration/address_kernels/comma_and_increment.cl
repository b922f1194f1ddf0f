kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int i = x;
  a[AT(i++)] = 1;
  a[AT(++i)] = 1;
  a[AT((i += 2, i))] = 1;
  a[AT(i-- - 1)] = 1;
  a[AT(i = 3)] = 1;
  a[AT(i)] = 1; }
