kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  for (int i = 0; i < n; i++) { if (i == x) break;
    a[AT(i)] = 1;
  } }
