// Merges two sorted lists: each work-item finds by a binary search how many of the first PIECE * id
// merged values come from either list, then merges PIECE values by itself. Of equal values those of
// the first list come first.
#define PIECE 32

__kernel void merge_path(__global const uint *restrict a, __global const uint *restrict b,
                         __global uint *restrict merged, const uint a_count, const uint b_count)
{
    const uint diagonal = get_global_id(0) * PIECE;
    uint low = diagonal > b_count ? diagonal - b_count : 0;
    uint high = min(diagonal, a_count);
    while (low < high) {
        const uint middle = (low + high) / 2;
        if (a[middle] <= b[diagonal - 1 - middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    uint i = low;
    uint k = diagonal - low;
    for (uint target = diagonal; target < diagonal + PIECE; ++target) {
        if (k >= b_count || (i < a_count && a[i] <= b[k])) {
            merged[target] = a[i++];
        } else {
            merged[target] = b[k++];
        }
    }
}
