/* Folding of RNA: a diagonal of the table of most pairs, a cell per work-item. */
#define AT(i, j) table[(size_t)(i) * n + (j)]
__kernel void fold(__global int *table, __global const uchar *bases, int n, int d)
{
    int i = get_global_id(0), j = i + d;
    if (j >= n)
        return;
    int best = AT(i + 1, j - 1) + (bases[i] + bases[j] == 3);
    for (int k = i; k < j; k++)
        best = max(best, AT(i, k) + AT(k + 1, j));
    AT(i, j) = best;
}
