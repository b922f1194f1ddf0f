typedef struct {
    float a, b;
} LL;

kernel void nn(global const LL *l, global float *d, int n, float la, float lo)
{
    int i = get_global_id(0);
    if (i < n) {
        LL q = l[i];
        d[i] = sqrt((la - q.a) * (la - q.a) + (lo - q.b) * (lo - q.b));
    }
}
