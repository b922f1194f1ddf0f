kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int4 v = (int4)(x, y, n, 3);
  a[AT(v.w + v.x)] = 1;
  v.xy = v.yx;
  a[AT(v.x * 4 + v.y)] = 1;
  v.lo += (int2)(1, 2);
  a[AT(v.s1)] = 1;
  int2 h = v.hi * 2;
  a[AT(h.x - h.y)] = 1;
  int2 w = v.even;
  a[AT(w.y + w.x)] = 1;
  v.z = x; v = v - 1;
  a[AT(v.z + 1)] = 1; }
