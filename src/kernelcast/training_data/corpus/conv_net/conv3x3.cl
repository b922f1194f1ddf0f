// A 3 x 3 convolution, stride 1, zeros around the image; channels first. A work-item makes one
// place of four output channels, a work-group stages its tile of one input channel at a time.
// Weights are ordered [output / 4][input][3 * 3][output % 4].
#define WIDE (TILE_X + 2)
#define HIGH (TILE_Y + 2)

inline float load_or_zero(__global const float *plane, const int x, const int y, const int width,
                          const int height)
{
    const bool is_inside = x >= 0 && x < width && y >= 0 && y < height;
    return is_inside ? plane[y * width + x] : 0.0f;
}

__kernel void conv3x3(__global const float *restrict input, __global const float4 *restrict weights,
                      __global const float4 *restrict bias, __global float *restrict output,
                      const int input_channels, const int output_quads)
{
    __local float tile[HIGH * WIDE];
    const int width = get_global_size(0);
    const int height = get_global_size(1);
    const int area = width * height;
    const int image = get_global_id(2) / output_quads;
    const int quad = get_global_id(2) % output_quads;
    const int lane = get_local_id(1) * TILE_X + get_local_id(0);
    const int left = get_group_id(0) * TILE_X - 1;
    const int top = get_group_id(1) * TILE_Y - 1;

    float4 sum = bias[quad];
    for (int channel = 0; channel < input_channels; ++channel) {
        __global const float *plane = input + ((size_t)image * input_channels + channel) * area;
        for (int i = lane; i < HIGH * WIDE; i += TILE_X * TILE_Y) {
            tile[i] = load_or_zero(plane, left + i % WIDE, top + i / WIDE, width, height);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        __global const float4 *kernel_weights = weights + (quad * input_channels + channel) * 9;
        for (int dy = 0; dy < 3; ++dy) {
            for (int dx = 0; dx < 3; ++dx) {
                const float value = tile[(get_local_id(1) + dy) * WIDE + get_local_id(0) + dx];
                sum += value * kernel_weights[dy * 3 + dx];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = fmax(sum, 0.0f);
    __global float *place = output + ((size_t)image * output_quads + quad) * 4 * area
                            + get_global_id(1) * width + get_global_id(0);
    place[0] = sum.x;
    place[area] = sum.y;
    place[2 * area] = sum.z;
    place[3 * area] = sum.w;
}
