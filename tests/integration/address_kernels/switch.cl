kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int t = 9; switch (x % 5) { case 0: t = 1; break; case 1: t = 2;
    a[AT(x)] = 1;
    case 2: t += 10; break; case 3: return; default: t = 4; }
  a[AT(t)] = 1; }
