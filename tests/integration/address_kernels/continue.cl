kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int t = 0; for (int i = 0; i < n; i++) { if (i % 3 == 1) continue;
    a[AT(i + x)] = 1;
  }
  a[AT(t)] = 1; }
