// The four nearest of all descriptors for each query, as in matching images: descriptors are 16
// bytes, distances sums of squares. A work-group goes over the descriptors together, as many at a
// time as it has work-items. Where two are equally near, the first one counts.
#define KEPT 4

inline int find_distance(const uchar16 a, const uchar16 b)
{
    const short16 difference = convert_short16(a) - convert_short16(b);
    const int8 low = convert_int8(difference.lo);
    const int8 high = convert_int8(difference.hi);
    const int8 squares = low * low + high * high;
    const int4 half_sum = squares.lo + squares.hi;
    return half_sum.x + half_sum.y + half_sum.z + half_sum.w;
}

__kernel void nearest(__global const uchar16 *restrict queries,
                      __global const uchar16 *restrict descriptors, __global int4 *restrict numbers,
                      __global int4 *restrict distances, const int descriptor_count,
                      __local uchar16 *tile)
{
    const int lane = get_local_id(0);
    const int lanes = get_local_size(0);
    const uchar16 query = queries[get_global_id(0)];
    int near[KEPT] = {INT_MAX, INT_MAX, INT_MAX, INT_MAX};
    int who[KEPT] = {-1, -1, -1, -1};
    for (int begin = 0; begin < descriptor_count; begin += lanes) {
        tile[lane] = descriptors[begin + lane];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < lanes; ++i) {
            const int distance = find_distance(query, tile[i]);
            if (distance < near[KEPT - 1]) {
                int place = KEPT - 1;
                for (; place > 0 && distance < near[place - 1]; --place) {
                    near[place] = near[place - 1];
                    who[place] = who[place - 1];
                }
                near[place] = distance;
                who[place] = begin + i;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    numbers[get_global_id(0)] = (int4)(who[0], who[1], who[2], who[3]);
    distances[get_global_id(0)] = (int4)(near[0], near[1], near[2], near[3]);
}
