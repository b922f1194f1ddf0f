// Diffusion by a compact stencil of nineteen points: those on the axes count twice as much as those
// on the edges of the cube, the corners do not count.
__kernel void stencil_19(__global const float *restrict now, __global float *restrict next,
                         const int row, const int layer, const float rate)
{
    const size_t place = (get_global_id(2) + 1) * layer + (get_global_id(1) + 1) * row
                         + get_global_id(0) + 1;
    __global const float *here = now + place;
    const float axes = here[-1] + here[1] + here[-row] + here[row] + here[-layer] + here[layer];
    const float flat = here[-row - 1] + here[-row + 1] + here[row - 1] + here[row + 1];
    const float below = here[-layer - 1] + here[-layer + 1] + here[-layer - row]
                        + here[-layer + row];
    const float above = here[layer - 1] + here[layer + 1] + here[layer - row] + here[layer + row];
    next[place] = here[0] + rate * (2.0f * axes + flat + below + above - 24.0f * here[0]);
}
