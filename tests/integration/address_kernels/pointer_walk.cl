kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  global int *p = a + x; for (int i = 0; i < 5; i++, p += 3)
  a[AT(p - a)] = 1;
  global int *q = &a[4]; q++;  a[AT(q - a)] = 1;
  a[AT(&q[x] - a)] = 2;
  for (q = a; q < a + n; q += 2) a[(int)(q - a)] = 1;
  a[AT(q - a)] = 2; }
