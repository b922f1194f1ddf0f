kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int s = 0, t = 0, last = 3; for (int i = 0; i < n; i++) { for (int j = 0; j < 4; j++) s += 2;
    a[AT(s)] = 1;
    t += i;
    a[AT(t)] = 1;
    a[AT(last)] = 1;
    last = i + x; }
  a[AT(s + t)] = 1;
  a[AT(last)] = 1; }
