kernel void k(global int *a, int n, int m, uint u LOG) {
  struct { int p, q; int2 r; } s = {1, 2, (int2)(3, 4)}, t;
  int x = get_global_id(0), y = get_global_id(1); // exact
  t = s; t.q = x; t.r.y += y;
  a[AT(t.p + t.q)] = 1;
  a[AT(t.r.x + t.r.y)] = 1;
  a[AT(s.q)] = 1;
  int *p = &t.p; *p = 9;
  a[AT(t.p)] = 1;
  for (int i = 0; i < 4; i++) t.q += 2;
  a[AT(t.q)] = 1; }
