// One dot product of four a work-item; four loads of each vector at neighbouring addresses.
__kernel void dot_product(__global const float *restrict a,
                          __global const float *restrict b,
                          __global float *restrict product,
                          const int count)
{
    const int i = get_global_id(0);
    if (i >= count) {
        return;
    }
    const int begin = i << 2;
    product[i] = a[begin] * b[begin]
               + a[begin + 1] * b[begin + 1]
               + a[begin + 2] * b[begin + 2]
               + a[begin + 3] * b[begin + 3];
}
