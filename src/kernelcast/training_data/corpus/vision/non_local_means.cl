// Noise removed by non-local means: a pixel becomes the mean of those whose surroundings look like its
// own. Edges repeat the last pixel.
#define SEARCH 2
#define PATCH 1

inline float load(__global const float *image, const int x, const int y, const int width,
                  const int height)
{
    return image[(size_t)clamp(y, 0, height - 1) * width + clamp(x, 0, width - 1)];
}

__kernel void non_local_means(__global const float *restrict image, __global float *restrict clean,
                              const int width, const int height, const float strictness)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    float mine[(2 * PATCH + 1) * (2 * PATCH + 1)];
    int i = 0;
    for (int py = -PATCH; py <= PATCH; ++py) {
        for (int px = -PATCH; px <= PATCH; ++px) {
            mine[i++] = load(image, x + px, y + py, width, height);
        }
    }
    float sum = 0.0f;
    float total = 0.0f;
    for (int dy = -SEARCH; dy <= SEARCH; ++dy) {
        for (int dx = -SEARCH; dx <= SEARCH; ++dx) {
            float unlike = 0.0f;
            i = 0;
            for (int py = -PATCH; py <= PATCH; ++py) {
                for (int px = -PATCH; px <= PATCH; ++px) {
                    const float gap = load(image, x + dx + px, y + dy + py, width, height)
                                      - mine[i++];
                    unlike += gap * gap;
                }
            }
            const float weight = exp(-strictness * unlike);
            sum += weight * load(image, x + dx, y + dy, width, height);
            total += weight;
        }
    }
    clean[(size_t)y * width + x] = sum / total;
}
