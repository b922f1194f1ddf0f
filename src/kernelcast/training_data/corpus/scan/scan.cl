// Exclusive prefix sums of blocks, one a work-group, and the sum of each block.

// A cell of padding for every 32 against bank conflicts.
inline uint pad(const uint i)
{
    return i + i / 32;
}

// Two values a work-item. Sums are built up a tree whose leaves are the values; then each node
// hands what lies before it down to its children.
__kernel void scan_tree(__global const uint *restrict in, __global uint *restrict out,
                        __global uint *restrict block_sums, __local uint *tree)
{
    const uint lane = get_local_id(0);
    const uint lanes = get_local_size(0);
    const size_t begin = get_group_id(0) * (size_t)(2 * lanes) + lane;
    tree[pad(lane)] = in[begin];
    tree[pad(lane + lanes)] = in[begin + lanes];

    uint stride = 1;
    for (uint nodes = lanes; nodes > 0; nodes /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < nodes) {
            const uint left = pad(stride * (2 * lane + 1) - 1);
            const uint right = pad(stride * (2 * lane + 2) - 1);
            tree[right] += tree[left];
        }
        stride *= 2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
        block_sums[get_group_id(0)] = tree[pad(2 * lanes - 1)];
        tree[pad(2 * lanes - 1)] = 0;
    }
    for (uint nodes = 1; nodes <= lanes; nodes *= 2) {
        stride /= 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < nodes) {
            const uint left = pad(stride * (2 * lane + 1) - 1);
            const uint right = pad(stride * (2 * lane + 2) - 1);
            const uint sum = tree[left];
            tree[left] = tree[right];
            tree[right] += sum;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[begin] = tree[pad(lane)];
    out[begin + lanes] = tree[pad(lane + lanes)];
}

#define BUNDLE 32

// Four values a work-item, whose sums are scanned within bundles of work-items, then the bundles'.
__kernel void scan_bundles(__global const uint4 *restrict in, __global uint4 *restrict out,
                           __global uint *restrict block_sums, __local uint *sums,
                           __local uint *bundle_sums)
{
    const uint slot = get_local_id(0);
    const uint lane = slot % BUNDLE;
    const uint bundle = slot / BUNDLE;
    const uint bundles = get_local_size(0) / BUNDLE;
    const uint4 values = in[get_global_id(0)];
    const uint4 inner =
        (uint4)(0, values.x, values.x + values.y, values.x + values.y + values.z);
    const uint mine = inner.w + values.w;

    uint sum = mine;
    for (uint reach = 1; reach < BUNDLE; reach *= 2) {
        sums[slot] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += lane >= reach ? sums[slot - reach] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == BUNDLE - 1) {
        bundle_sums[bundle] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint before = 0;
    for (uint i = 0; i < bundle; ++i) {
        before += bundle_sums[i];
    }
    out[get_global_id(0)] = inner + (before + sum - mine);
    if (slot == bundles * BUNDLE - 1) {
        block_sums[get_group_id(0)] = before + sum;
    }
}
