kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  int t = 0; for (int i = 0; i < n; i++) { switch (i & 3) { case 0: continue; case 1: t = i; break; case 2: t = 2 * i; }
    a[AT(t)] = 1;
  }
}
