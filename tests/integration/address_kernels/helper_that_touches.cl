void g(global int *b, int v LOG) { if (v > 4) {
    b[AT(v)] = 1; // exact
    return; }
  b[AT(v + 20)] = 2; }
kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  g(a, x PASS);
  g(a, y * 2 PASS); }
