kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  int t = 0; for (int i = 0; i < n; i++) { if ((i & 1) == 0) continue; t++;
    a[AT(i)] = 1;
  }
  a[AT(n)] = 1; }
