kernel void coo(global const int *r, global const int *c, global const float *v,
                global const float *x, global uint *y, int nnz)
{
    int k = get_global_id(0);
    if (k < nnz) {
        float p = v[k] * x[c[k]];
        uint o = y[r[k]], q;
        do {
            q = o;
            o = atomic_cmpxchg(&y[r[k]], q, as_uint(as_float(q) + p));
        } while (o != q);
    }
}
