// Adds up the points of each cluster. A work-group keeps sums of its own in local memory, points go
// there by atomics, and the sums go to global memory by atomics in the end.
#define CLUSTERS 32
#define POINTS_PER_ITEM 16

__kernel void centroid_sums(__global const short4 *restrict points,
                            __global const uchar *restrict clusters,
                            volatile __global int *sums, volatile __global int *counts)
{
    __local int group_sums[CLUSTERS * 4];
    __local int group_counts[CLUSTERS];
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    for (int i = lane; i < CLUSTERS * 4; i += lanes) {
        group_sums[i] = 0;
    }
    for (int i = lane; i < CLUSTERS; i += lanes) {
        group_counts[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const size_t begin = (size_t)get_group_id(0) * lanes * POINTS_PER_ITEM + lane;
    for (int k = 0; k < POINTS_PER_ITEM; ++k) {
        const short4 point = points[begin + k * lanes];
        const int cluster = clusters[begin + k * lanes];
        atomic_add(group_sums + cluster * 4, point.x);
        atomic_add(group_sums + cluster * 4 + 1, point.y);
        atomic_add(group_sums + cluster * 4 + 2, point.z);
        atomic_add(group_sums + cluster * 4 + 3, point.w);
        atomic_inc(group_counts + cluster);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lane; i < CLUSTERS * 4; i += lanes) {
        atomic_add(sums + i, group_sums[i]);
    }
    for (int i = lane; i < CLUSTERS; i += lanes) {
        atomic_add(counts + i, group_counts[i]);
    }
}
