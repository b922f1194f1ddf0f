kernel void k(global int *a, int n, int m, uint u LOG) {
  int x = get_global_id(0), y = get_global_id(1); // exact
  uchar c = x + 250;
  a[AT(c)] = 1;
  c += 7;
  a[AT(c)] = 1;
  c++;
  a[AT((uchar)(x - 5))] = 2;
  a[AT((char)(x * 40))] = 3;
  ushort s = x - 1;
  a[AT(s >> 10)] = 1;
  a[AT(convert_uchar(x * 30))] = 1;
  a[AT(convert_uchar_sat(x * 30))] = 1;
  uchar w = 250; for (int i = 0; i < 9; i++) {
    a[AT(w)] = 1;
    w++; } }
