kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  int s = 0; for (int i = 0; i < n; i++) { if (a[i] & 1) s++;
    a[AT(s)] = a[0];
  } }
