// A Julia set with four samples a pixel, in fixed point of 24 bits behind the point, so that no
// device rounds differently. A pixel adds up how long its samples stay within the circle of radius
// 2.
#define ONE (1 << 24)

inline int multiply(const int a, const int b)
{
    return (int)(((long)a * b) >> 24);
}

inline int count_turns(int x, int y, const int c_x, const int c_y, const int most_turns)
{
    int turn = 0;
    for (; turn < most_turns; ++turn) {
        const int x_square = multiply(x, x);
        const int y_square = multiply(y, y);
        if (x_square + y_square > 4 * ONE) {
            break;
        }
        y = 2 * multiply(x, y) + c_y;
        x = x_square - y_square + c_x;
    }
    return turn;
}

__kernel void julia(__global uint *restrict turns, const int c_x, const int c_y,
                    const int half_step, const int most_turns)
{
    const int left = (2 * (int)get_global_id(0) - (int)get_global_size(0)) * half_step;
    const int top = (2 * (int)get_global_id(1) - (int)get_global_size(1)) * half_step;
    uint sum = 0;
    for (int sample = 0; sample < 4; ++sample) {
        const int x = left + (sample & 1) * half_step;
        const int y = top + (sample >> 1) * half_step;
        sum += count_turns(x, y, c_x, c_y, most_turns);
    }
    turns[get_global_id(1) * get_global_size(0) + get_global_id(0)] = sum;
}
