kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  uint v = x;
  if (v - 3u < 4u)
  a[AT(x)] = 1;
  if (v - u >= 4)
  a[AT(x)] = 1;
  a[AT((v - 2) % 5)] = 2;
  a[AT((v * 2654435761u) >> 24)] = 3;
  a[AT(min(v - 1, 9u))] = 1;
  if (v - 1 != 0xffffffffu)
  a[AT(x)] = 4;
  a[AT((v - 9) & 0xfffffff0u & 31)] = 1; }
