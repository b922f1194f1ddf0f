// Turns pairs of a query's or key's elements by angles that grow with the position and fall with
// the pair. Dimension 0 counts pairs of all heads, dimension 1 tokens.
__kernel void rotary(__global const float2 *restrict given, __global float2 *restrict turned,
                     const int pairs_per_head, const int context, const float base_log2)
{
    const int pair = get_global_id(0) % pairs_per_head;
    const int position = get_global_id(1) % context;
    const float angle = position * exp2(-base_log2 * pair / pairs_per_head);
    float cosine;
    const float sine = sincos(angle, &cosine);
    const size_t place = get_global_id(1) * get_global_size(0) + get_global_id(0);
    const float2 x = given[place];
    turned[place] = (float2)(x.x * cosine - x.y * sine, x.x * sine + x.y * cosine);
}
