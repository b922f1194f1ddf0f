// A depthwise 3 x 3 convolution with stride 2; zeros around the image, channels last. A work-item
// has four channels of one place.
__kernel void depthwise(__global const float4 *restrict input,
                        __global const float4 *restrict weights, __global float4 *restrict output,
                        const int input_side)
{
    const int quad = get_global_id(0);
    const int quads = get_global_size(0);
    const int side = get_global_size(1);
    const int x = get_global_id(1);
    const int y = get_global_id(2) % side;
    const size_t image = get_global_id(2) / side;
    float4 sum = (float4)(0.0f);
    for (int dy = 0; dy < 3; ++dy) {
        const int from_y = 2 * y + dy - 1;
        if (from_y < 0 || from_y >= input_side) {
            continue;
        }
        for (int dx = 0; dx < 3; ++dx) {
            const int from_x = 2 * x + dx - 1;
            if (from_x >= 0 && from_x < input_side) {
                const size_t place = (image * input_side + from_y) * input_side + from_x;
                sum = mad(input[place * quads + quad], weights[(dy * 3 + dx) * quads + quad], sum);
            }
        }
    }
    // ReLU6, as in networks for small devices
    output[((image * side + y) * side + x) * quads + quad] = clamp(sum, 0.0f, 6.0f);
}
