kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  int o[4] = {3, 1, 4}; int w[2][3]; w[1][2] = x; w[0][2] = 5;
  a[AT(o[2] + o[3])] = 1;
  a[AT(w[1][2] + w[0][2])] = 1;
  o[1] = y;
  a[AT(o[1])] = 1; }
