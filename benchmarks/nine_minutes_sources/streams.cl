
kernel void kc_copy(global const float *from, global float *to, local uchar *ballast)
{ int i = get_global_id(0); to[i] = from[i]; if (to[i] == -1.0f) ballast[0] = 1; }
kernel void kc_read(global const float *from, global float *to, local uchar *ballast)
{ int i = get_global_id(0); float x = from[i]; if (x == -1.0f) { ballast[0] = 1; to[0] = x; } }
