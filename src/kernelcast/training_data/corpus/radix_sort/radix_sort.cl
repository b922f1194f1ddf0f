// A pass of a radix sort over a digit of DIGIT_BITS bits. radix_sort_block_keys sorts every block
// in local memory; reorder_data_keys moves the keys of sorted blocks to their places among all.
#define DIGIT_BITS 4
#define DIGITS (1 << DIGIT_BITS)

// Lanes that are scanned together; the sums of such bundles are scanned after that.
#define BUNDLE 32
// Local sizes go up to 256, so that there are at most 8 bundles.
#define MOST_LANES 256

// Scans within bundles. Each has BUNDLE zeros below it, so that no lane has to ask whether there is
// one so far before it; two copies take turns.
inline uint scan_bundle(const uint mine, __local uint *copies, const uint lane)
{
    const uint slot = lane + lane / BUNDLE * BUNDLE + BUNDLE;
    __local uint *from = copies;
    __local uint *to = copies + 2 * MOST_LANES;
    uint sum = mine;
    from[slot] = sum;
    for (uint reach = 1; reach < BUNDLE; reach *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += from[slot - reach];
        to[slot] = sum;
        __local uint *other = from;
        from = to;
        to = other;
    }
    return sum;
}

// Gives how many flags lie before each of the lane's four; `total` becomes the number of all.
inline uint4 count_before(const uint4 flags, __local uint *copies, __local uint *bundle_sums,
                          const uint lane, uint *total)
{
    const uint4 inner =
        (uint4)(0, flags.x, flags.x + flags.y, flags.x + flags.y + flags.z);
    const uint mine = inner.w + flags.w;
    const uint sum = scan_bundle(mine, copies, lane);
    if (lane % BUNDLE == BUNDLE - 1) {
        bundle_sums[lane / BUNDLE] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint before = sum - mine;
    uint all = 0;
    for (uint bundle = 0; bundle < get_local_size(0) / BUNDLE; ++bundle) {
        before += bundle < lane / BUNDLE ? bundle_sums[bundle] : 0;
        all += bundle_sums[bundle];
    }
    *total = all;
    return inner + before;
}

// Sorts each block of four keys a work-item by one digit, bit by bit: those without the bit first.
__kernel void radix_sort_block_keys(__global const uint4 *restrict keys,
                                    __global uint4 *restrict sorted,
                                    const uint shift)
{
    __local uint copies[4 * MOST_LANES];
    __local uint bundle_sums[MOST_LANES / BUNDLE];
    __local uint moved[4 * MOST_LANES];

    const uint lane = get_local_id(0);
    const uint lanes = get_local_size(0);
    uint4 mine = keys[get_global_id(0)];
    for (uint i = lane; i < 4 * MOST_LANES; i += lanes) {
        copies[i] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint bit = shift; bit < shift + DIGIT_BITS; ++bit) {
        const uint4 zeros = 1 - ((mine >> bit) & 1);
        uint all_zeros;
        const uint4 before = count_before(zeros, copies, bundle_sums, lane, &all_zeros);
        const uint4 place = 4 * lane + (uint4)(0, 1, 2, 3);
        const uint4 to = zeros == 1 ? before : all_zeros + place - before;
        // Key k of lane l lies at k * lanes + l, so that neighbours load from neighbouring banks.
        moved[to.x % 4 * lanes + to.x / 4] = mine.x;
        moved[to.y % 4 * lanes + to.y / 4] = mine.y;
        moved[to.z % 4 * lanes + to.z / 4] = mine.z;
        moved[to.w % 4 * lanes + to.w / 4] = mine.w;
        barrier(CLK_LOCAL_MEM_FENCE);
        mine = (uint4)(moved[lane], moved[lanes + lane], moved[2 * lanes + lane],
                       moved[3 * lanes + lane]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sorted[get_global_id(0)] = mine;
}

#define REORDER_PAIRS 256

// A work-group moves a block of 2 * REORDER_PAIRS keys that are sorted by the digit. `starts` says
// where the block's keys of each digit go, `block_starts` where they begin in the block.
__kernel void reorder_data_keys(__global const uint2 *restrict keys,
                                __global const uint *restrict starts,
                                __global const uint *restrict block_starts,
                                __global uint *restrict moved,
                                const uint shift,
                                const uint blocks)
{
    __local uint block_keys[2 * REORDER_PAIRS];
    __local uint offsets[DIGITS];

    const uint lane = get_local_id(0);
    const uint lanes = get_local_size(0);
    const uint block = get_group_id(0);
    if (lane < DIGITS) {
        offsets[lane] = starts[lane * blocks + block] - block_starts[block * DIGITS + lane];
    }
    for (uint pair = lane; pair < REORDER_PAIRS; pair += lanes) {
        const uint2 two = keys[block * REORDER_PAIRS + pair];
        block_keys[2 * pair] = two.x;
        block_keys[2 * pair + 1] = two.y;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = lane; i < 2 * REORDER_PAIRS; i += lanes) {
        const uint key = block_keys[i];
        moved[offsets[(key >> shift) % DIGITS] + i] = key;
    }
}
