int f(int v LOG) { if (v < 3) return 5; for (int i = 0; i < 3; i++) { if (v == i + 4) return i; } if (v & 1) return v; return v * 2; }
kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1);
  a[AT(x)] = 1;
  a[AT(f(2 PASS))] = 1;
  int r = f(x PASS);
  a[AT(max(r, 0) * 0 + x)] = 1; }
