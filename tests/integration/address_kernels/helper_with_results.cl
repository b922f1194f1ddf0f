int h(int v, int *o) { if (v > 3) { *o = 1; return v; } *o = v; return 2; }
kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int w = 7; int r = h(x, &w);
  a[AT(r)] = 1;
  a[AT(w)] = 1; }
