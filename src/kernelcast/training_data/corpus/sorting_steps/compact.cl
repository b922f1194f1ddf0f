// Keeps the records whose key is below a limit, in their order. A work-group has a tile of records,
// four a work-item; where its first one goes was found by an earlier launch. Prefix sums of what
// the work-items keep give each its place.
#define RECORDS 4

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1)))
void compact(__global const uint4 *restrict records, __global const uint *restrict tile_begin,
             __global uint4 *restrict kept, const uint limit)
{
    __local uint scan[2][LOCAL];
    const uint lane = get_local_id(0);
    const size_t first = get_global_id(0) * RECORDS;
    uint4 mine[RECORDS];
    uint count = 0;
    for (uint i = 0; i < RECORDS; ++i) {
        mine[i] = records[first + i];
        count += mine[i].x < limit;
    }
    uint side = 0;
    scan[side][lane] = count;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint reach = 1; reach < LOCAL; reach *= 2) {
        const uint before = lane >= reach ? scan[side][lane - reach] : 0;
        scan[1 - side][lane] = scan[side][lane] + before;
        side = 1 - side;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    uint place = tile_begin[get_group_id(0)] + scan[side][lane] - count;
    for (uint i = 0; i < RECORDS; ++i) {
        if (mine[i].x < limit) {
            kept[place++] = mine[i];
        }
    }
}
