// LU factorisation with partial pivoting of many 32 x 32 matrices, one a work-group, in local
// memory. pivots[k] is the row that row k was swapped with, as in LAPACK.
#define ORDER 32
#define PITCH (ORDER + 1)

__kernel void lu_small(__global const float *restrict matrices, __global float *restrict factors,
                       __global int *restrict pivots)
{
    __local float work[ORDER * PITCH];
    __local int pivot;
    const size_t matrix = (size_t)get_group_id(0) * ORDER * ORDER;
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    for (int i = lane; i < ORDER * ORDER; i += lanes) {
        work[i / ORDER * PITCH + i % ORDER] = matrices[matrix + i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < ORDER; ++k) {
        if (lane == 0) {
            int best = k;
            for (int row = k + 1; row < ORDER; ++row) {
                if (fabs(work[row * PITCH + k]) > fabs(work[best * PITCH + k])) {
                    best = row;
                }
            }
            pivot = best;
            pivots[get_group_id(0) * ORDER + k] = best;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int column = lane; column < ORDER; column += lanes) {
            const float upper = work[pivot * PITCH + column];
            work[pivot * PITCH + column] = work[k * PITCH + column];
            work[k * PITCH + column] = upper;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int row = k + 1 + lane; row < ORDER; row += lanes) {
            work[row * PITCH + k] /= work[k * PITCH + k];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const int left = ORDER - 1 - k;
        for (int i = lane; i < left * left; i += lanes) {
            const int row = k + 1 + i / left;
            const int column = k + 1 + i % left;
            work[row * PITCH + column] -= work[row * PITCH + k] * work[k * PITCH + column];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = lane; i < ORDER * ORDER; i += lanes) {
        factors[matrix + i] = work[i / ORDER * PITCH + i % ORDER];
    }
}
