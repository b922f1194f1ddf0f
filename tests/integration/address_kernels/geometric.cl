kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  for (int s = 1; s < n; s *= 2)
  a[AT(x + s)] = 1;
  for (int s = n; s > 0; s >>= 1)
  a[AT(s)] = 1;
  for (uint s = 32; s > 0; s /= 2)
  a[AT(s + y)] = 1;
  for (int s = 1; s <= 64; s <<= 1)
  a[AT(s)] = 1; }
