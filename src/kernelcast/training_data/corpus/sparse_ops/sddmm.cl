// The entries of P * Q^T at the places of a sparse matrix, times its entries: what factorising a
// matrix of ratings and attention on graphs need. An entry a work-item; rows of P and Q have 32
// values.
#define VECTORS 8

__kernel void sddmm(__global const int *restrict rows, __global const int *restrict columns,
                    __global const float *restrict entries, __global const float4 *restrict p,
                    __global const float4 *restrict q, __global float *restrict sampled,
                    const int entry_count)
{
    const int i = get_global_id(0);
    if (i >= entry_count) {
        return;
    }
    __global const float4 *left = p + rows[i] * VECTORS;
    __global const float4 *right = q + columns[i] * VECTORS;
    float4 sum = (float4)(0.0f);
    for (int k = 0; k < VECTORS; ++k) {
        sum += left[k] * right[k];
    }
    sampled[i] = entries[i] * (sum.x + sum.y + sum.z + sum.w);
}
