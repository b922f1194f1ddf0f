kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  int i = 0; again:
  a[AT(i)] = 1;
  if (++i < 3) goto again;
  a[AT(i)] = 2; }
