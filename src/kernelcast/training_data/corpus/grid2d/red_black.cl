// Half a sweep of successive over-relaxation for Poisson's equation: points of one colour of the
// chessboard, whose neighbours all have the other. Each row of work-items takes every other point.
__kernel void red_black(__global float *restrict field, __global const float *restrict charge,
                        const int width, const int height, const int colour, const float omega)
{
    const int y = get_global_id(1);
    const int x = 2 * get_global_id(0) + ((y + colour) & 1);
    if (x < 1 || x >= width - 1 || y < 1 || y >= height - 1) {
        return;
    }
    const size_t place = (size_t)y * width + x;
    const float around = field[place - 1] + field[place + 1] + field[place - width]
                         + field[place + width];
    const float here = field[place];
    field[place] = here + omega * (0.25f * (around - charge[place]) - here);
}
