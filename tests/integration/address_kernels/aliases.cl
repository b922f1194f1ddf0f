kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  int t = 1, *p = &t; for (int i = 0; i < 5; i++) {
    a[AT(t)] = 1;
    *p += i; }
  a[AT(x)] = 1;
  int c[3] = {0, 0, 0}; for (int i = 0; i < 3; i++) c[i] = i;
  a[AT(c[2])] = 1; }
