// Two-point angular correlation: histograms of the angles between all pairs of points on a sphere,
// for the observed points with themselves, each random set with itself and the observed points with
// each random set. A work-group takes a tile of points and goes through the other set tile by tile
// in local memory; a set with itself only needs the pairs above the diagonal, so work-groups do
// different amounts of work. The bin is found by bisection over cosines, the greatest first.
#define BINS 20

// `points` holds 1 + sets sets; row s of the histograms is a set with itself for s <= sets, else the
// observed set with random set s - sets.
__kernel void gen_hists(__global const float4 *restrict points,
                        __constant float *limits,
                        __global int *restrict histograms,
                        __local float4 *tile,
                        const int count,
                        const int sets)
{
    __local int bins[BINS];

    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const int row = get_group_id(1);
    const int begin = get_group_id(0) * lanes;
    const bool is_self = row <= sets;
    __global const float4 *mine = points + (is_self ? row : 0) * count;
    __global const float4 *theirs = points + (is_self ? row : row - sets) * count;

    for (int bin = lane; bin < BINS; bin += lanes) {
        bins[bin] = 0;
    }
    const float4 point = mine[begin + lane];
    for (int first = is_self ? begin : 0; first < count; first += lanes) {
        barrier(CLK_LOCAL_MEM_FENCE);
        tile[lane] = theirs[first + lane];
        barrier(CLK_LOCAL_MEM_FENCE);
        const int start = is_self && first == begin ? lane + 1 : 0;
        for (int j = start; j < lanes; ++j) {
            const float4 other = tile[j];
            const float cosine = point.x * other.x + point.y * other.y + point.z * other.z;
            int low = 0;
            int high = BINS;
            while (high > low + 1) {
                const int middle = (low + high) / 2;
                if (cosine >= limits[middle]) {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            atomic_inc(&bins[low]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int bin = lane; bin < BINS; bin += lanes) {
        if (bins[bin] > 0) {
            atomic_add(&histograms[row * BINS + bin], bins[bin]);
        }
    }
}
