kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int i = 0; do {
    a[AT(i + x)] = 1;
    i += 4; } while (i < n);
  a[AT(i)] = 1;
  int j = n; do {
    a[AT(j)] = 1;
    j /= 2; } while (j > 0); }
