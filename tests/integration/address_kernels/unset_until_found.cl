kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  int best; for (int i = 0; i < n; i++) { if (i == 0 || a[i] > 30) best = i;
    a[AT(best)] += 0;
  }
  a[AT(best)] += 0; }
