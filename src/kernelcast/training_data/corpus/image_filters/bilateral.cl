// A bilateral filter: neighbours weigh less the further away and the more different they are.
#define RADIUS 3

__kernel void bilateral(__global const float *restrict image, __global float *restrict smoothed,
                        const int width, const int height, const float distance_scale,
                        const float value_scale)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    const float centre = image[(size_t)y * width + x];
    float sum = 0.0f;
    float total = 0.0f;
    for (int dy = -RADIUS; dy <= RADIUS; ++dy) {
        const size_t row = (size_t)clamp(y + dy, 0, height - 1) * width;
        for (int dx = -RADIUS; dx <= RADIUS; ++dx) {
            const float value = image[row + clamp(x + dx, 0, width - 1)];
            const float difference = value - centre;
            const float weight = exp(-distance_scale * (dx * dx + dy * dy)
                                     - value_scale * difference * difference);
            sum += weight * value;
            total += weight;
        }
    }
    smoothed[(size_t)y * width + x] = sum / total;
}
