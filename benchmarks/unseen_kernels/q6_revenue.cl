/* Revenue of the rows that pass three ranges (TPC-H Q6): a partial sum per work-group. */
__kernel void q6(__global const int *shipped, __global const uchar *discount, __global const uchar *quantity,
                 __global const long *price, __global long *partial, __local long *sums, uint rows,
                 int from, int to)
{
    uint l = get_local_id(0), n = get_local_size(0);
    long sum = 0;
    for (uint i = get_global_id(0); i < rows; i += get_global_size(0))
        if (shipped[i] >= from && shipped[i] < to && discount[i] >= 5 && discount[i] <= 7 && quantity[i] < 24)
            sum += price[i] * discount[i];
    sums[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_n = n >> 1; half_n; half_n >>= 1) {
        if (l < half_n)
            sums[l] += sums[l + half_n];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        partial[get_group_id(0)] = sums[0];
}
