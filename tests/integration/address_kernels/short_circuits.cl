kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int i = 0; if (x > 3 && i++ < 5) { }
  a[AT(i)] = 1;
  if (x < 2 || y == 1)
  a[AT(x)] = 1;
  int j = 4; bool q = (x & 1) || (j = 7) > 0;
  a[AT(j + q)] = 1; }
