kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  a[AT(x > 4 ? x - 4 : y)] = 1;
  a[AT(max(x, y) + min(n, x))] = 1;
  int t = x; if (y > 2) t = n; else if (y > 0) t += 2;
  a[AT(t)] = 1;
  a[AT(!(x & 1))] = 1;
  a[AT((x > 3) + (y > 3))] = 1;
  bool b = x & 4;
  a[AT(b)] = 1; }
