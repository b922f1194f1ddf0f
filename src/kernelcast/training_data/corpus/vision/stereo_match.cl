// Depth from two cameras: the shift at which the 5 x 5 pixels around a place look most alike in both
// images; the first one counts. Edges repeat the last pixel.
#define RADIUS 2
#define SHIFTS 24

__kernel void stereo_match(__global const uchar *restrict left_image,
                           __global const uchar *restrict right_image,
                           __global uchar *restrict shifts, const int width, const int height)
{
    const int x = get_global_id(0);
    const int y = get_global_id(1);
    int least = INT_MAX;
    int best = 0;
    for (int shift = 0; shift < SHIFTS; ++shift) {
        int cost = 0;
        for (int dy = -RADIUS; dy <= RADIUS; ++dy) {
            const size_t row = (size_t)clamp(y + dy, 0, height - 1) * width;
            for (int dx = -RADIUS; dx <= RADIUS; ++dx) {
                const int mine = left_image[row + clamp(x + dx, 0, width - 1)];
                const int theirs = right_image[row + clamp(x + dx - shift, 0, width - 1)];
                cost += abs(mine - theirs);
            }
        }
        if (cost < least) {
            least = cost;
            best = shift;
        }
    }
    shifts[(size_t)y * width + x] = best;
}
