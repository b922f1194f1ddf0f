// The greatest value of each 3 x 3 window, two apart, and where in its plane it stood; the first
// one counts. Windows at the edges are cut off.
__kernel void max_pool(__global const float *restrict input, __global float *restrict output,
                       __global int *restrict places, const int input_side)
{
    const int side = get_global_size(0);
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const size_t plane = get_global_id(2);
    __global const float *values = input + plane * input_side * input_side;
    const int right = min(2 * x + 2, input_side);
    const int bottom = min(2 * y + 2, input_side);
    float greatest = -INFINITY;
    int place = -1;
    for (int from_y = max(2 * y - 1, 0); from_y < bottom; ++from_y) {
        for (int from_x = max(2 * x - 1, 0); from_x < right; ++from_x) {
            const float value = values[from_y * input_side + from_x];
            if (value > greatest) {
                greatest = value;
                place = from_y * input_side + from_x;
            }
        }
    }
    const size_t target = (plane * side + y) * side + x;
    output[target] = greatest;
    places[target] = place;
}
