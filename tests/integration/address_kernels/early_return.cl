kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  if (x >= n - 4) return;
  a[AT(x)] = 1;
  if (y == 2) { if (x > 3) return;
    a[AT(x)] = 2;
  }
  a[AT(x + y)] = 3; }
