// Running sums along each row, the first half of an integral image. A work-group takes a row in
// pieces of four pixels a work-item: sums of the fours by doubling reaches in local memory, then a
// carry into the next piece.
__kernel void integral_rows(__global const uchar4 *restrict image, __global uint4 *restrict sums,
                            const int vectors, __local uint *scan)
{
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const size_t row = (size_t)get_group_id(0) * vectors;
    uint carry = 0;
    for (int begin = 0; begin < vectors; begin += lanes) {
        uint4 mine = (uint4)(0);
        if (begin + lane < vectors) {
            mine = convert_uint4(image[row + begin + lane]);
        }
        mine.y += mine.x;
        mine.z += mine.y;
        mine.w += mine.z;
        uint sum = mine.w;
        scan[lane] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = 1; reach < lanes; reach *= 2) {
            const uint before = lane >= reach ? scan[lane - reach] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            sum += before;
            scan[lane] = sum;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (begin + lane < vectors) {
            sums[row + begin + lane] = mine + (carry + sum - mine.w);
        }
        carry += scan[lanes - 1];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
