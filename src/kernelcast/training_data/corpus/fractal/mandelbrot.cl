// How often z * z + c can be repeated before z leaves the circle of radius 2, for each point c.
// Contraction would move the edge of the set a little from device to device.
#pragma OPENCL FP_CONTRACT OFF

__kernel void mandelbrot(__global ushort *restrict turns, const float left, const float top,
                         const float step, const int most_turns)
{
    const float c_x = left + get_global_id(0) * step;
    const float c_y = top + get_global_id(1) * step;
    float x = 0.0f;
    float y = 0.0f;
    float x_square = 0.0f;
    float y_square = 0.0f;
    int turn = 0;
    while (turn < most_turns && x_square + y_square <= 4.0f) {
        y = 2.0f * x * y + c_y;
        x = x_square - y_square + c_x;
        x_square = x * x;
        y_square = y * y;
        ++turn;
    }
    turns[get_global_id(1) * get_global_size(0) + get_global_id(0)] = turn;
}
