kernel void k(global int *a, int n, int m, uint u LOG) {
  local int t[3][4]; // exact
  int lx = get_local_id(0), ly = get_local_id(1);
  t[ly][lx] = 1; barrier(CLK_LOCAL_MEM_FENCE);
  a[AT(get_group_id(1) * 4 + lx * 3 + ly)] = t[ly][lx];
  a[AT(get_global_id(1) * get_global_size(0) + get_global_id(0))] = 1; }
