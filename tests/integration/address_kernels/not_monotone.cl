kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  for (int i = 0; (i & 3) != 3; i++)
  a[AT(i)] = 1;
  for (int i = x; (i & 3) != 3; i++)
  a[AT(i)] = 1; }
