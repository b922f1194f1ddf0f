// Averages RGBA pixels over 2 * RADIUS + 1 neighbours of their row. A work-group loads a stretch of
// the row with its halo into local memory; the work-items of the halo only load. ALIGNED is RADIUS
// rounded up to 16, so that the first pixel written by a work-group is aligned.
__kernel void box_rows_lmem(__global const uchar4 *restrict source,
                            __global uchar4 *restrict target,
                            __local uchar4 *row,
                            const int width,
                            const float scale)
{
    const int lane = get_local_id(0);
    const int begin = get_global_id(1) * width;
    const int column = get_group_id(0) * OUTPUTS + lane - ALIGNED;

    row[lane] = column >= 0 && column < width ? source[begin + column] : (uchar4)(0);
    barrier(CLK_LOCAL_MEM_FENCE);

    if (column >= 0 && column < width && lane >= ALIGNED && lane < ALIGNED + OUTPUTS) {
        float4 sum = (float4)(0.0f);
        for (int k = lane - RADIUS; k <= lane + RADIUS; ++k) {
            sum += convert_float4(row[k]);
        }
        target[begin + column] = convert_uchar4_sat_rte(sum * scale);
    }
}
