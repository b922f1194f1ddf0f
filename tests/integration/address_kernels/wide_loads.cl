kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int4 v = vload4(0, a + AT(x * 4));
  vstore2((int2)(1, 2), 0, a + AT(4 + 2 * y)); }
