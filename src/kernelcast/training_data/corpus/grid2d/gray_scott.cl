// A step of the reaction of Gray and Scott: two substances spread by a stencil of nine points, the
// second one feeds on the first. Edges meet.
__kernel void gray_scott(__global const float2 *restrict now, __global float2 *restrict next,
                         const float2 spread, const float feed, const float kill)
{
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const int west = (x + width - 1) % width;
    const int east = (x + 1) % width;
    const size_t row = (size_t)y * width;
    const size_t above = (size_t)((y + height - 1) % height) * width;
    const size_t below = (size_t)((y + 1) % height) * width;
    const float2 here = now[row + x];
    const float2 sides = now[row + west] + now[row + east] + now[above + x] + now[below + x];
    const float2 corners = now[above + west] + now[above + east] + now[below + west]
                           + now[below + east];
    const float2 bend = 0.2f * sides + 0.05f * corners - here;
    const float eaten = here.x * here.y * here.y;
    const float2 reaction = (float2)(feed * (1.0f - here.x) - eaten,
                                     eaten - (feed + kill) * here.y);
    next[row + x] = here + spread * bend + reaction;
}
