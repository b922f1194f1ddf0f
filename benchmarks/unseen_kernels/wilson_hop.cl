/* Lattice QCD: the hopping term of staggered fermions on a periodic lattice of four dimensions. */
typedef float2 complex;
complex mul(complex a, complex b) { return (complex)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
complex conj_mul(complex a, complex b) { return (complex)(a.x * b.x + a.y * b.y, a.x * b.y - a.y * b.x); }

__kernel void hop(__global const complex *links, __global const complex *in, __global complex *out, int n)
{
    int x = get_global_id(0), y = get_global_id(1), zt = get_global_id(2), z = zt % n, t = zt / n;
    int volume = n * n * n * n, site = ((t * n + z) * n + y) * n + x;
    int ahead[4] = {((t * n + z) * n + y) * n + (x + 1) % n, ((t * n + z) * n + (y + 1) % n) * n + x,
                    ((t * n + (z + 1) % n) * n + y) * n + x, (((t + 1) % n * n + z) * n + y) * n + x};
    int behind[4] = {((t * n + z) * n + y) * n + (x + n - 1) % n, ((t * n + z) * n + (y + n - 1) % n) * n + x,
                     ((t * n + (z + n - 1) % n) * n + y) * n + x, (((t + n - 1) % n * n + z) * n + y) * n + x};
    complex sum[3] = {0, 0, 0};
    for (int mu = 0; mu < 4; mu++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                sum[i] += mul(links[(mu * 9 + i * 3 + j) * volume + site], in[j * volume + ahead[mu]]);
                sum[i] -= conj_mul(links[(mu * 9 + j * 3 + i) * volume + behind[mu]], in[j * volume + behind[mu]]);
            }
    for (int i = 0; i < 3; i++)
        out[i * volume + site] = 0.5f * sum[i];
}
