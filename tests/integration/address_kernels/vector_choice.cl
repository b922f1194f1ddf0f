kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int2 v = (int2)(x, y);
  int2 w = v > (int2)(3, 2) ? v : (int2)(7, 8);
  a[AT(w.x)] = 1;
  a[AT(w.y)] = 1;
  a[AT(select(x, 5, x > 6))] = 2;
  a[AT(clamp(x - 4, 0, 5))] = 1;
  a[AT(abs(x - 6))] = 1;
  a[AT(mad24(x, 3, y))] = 1; }
