// Fourier transforms of 512 complex numbers, one a work-group of 64 work-items. Each transforms
// eight numbers that lie 64 apart in registers, turns them, exchanges them for others; after three
// such rounds (512 = 8 * 8 * 8) all is done.
#define LENGTH 512
#define LANES 64
// A row of 64 numbers has two more against bank conflicts.
#define PITCH 66

#define FORWARD (-1.0f)
#define BACKWARD 1.0f

inline float2 multiply(const float2 a, const float2 b)
{
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// Multiplies by i or -i.
inline float2 turn_quarter(const float2 a, const float direction)
{
    return (float2)(-direction * a.y, direction * a.x);
}

inline void transform_two(float2 *a, float2 *b)
{
    const float2 sum = *a + *b;
    *b = *a - *b;
    *a = sum;
}

// Leaves its results in the order 0, 2, 1, 3.
inline void transform_four(float2 *a, float2 *b, float2 *c, float2 *d, const float direction)
{
    transform_two(a, c);
    transform_two(b, d);
    *d = turn_quarter(*d, direction);
    transform_two(a, b);
    transform_two(c, d);
}

// Transforms eight numbers in place and puts the results into their order.
inline void transform_eight(float2 v[8], const float direction)
{
    const float root = 0.70710678118654752f;
    for (int k = 0; k < 4; ++k) {
        transform_two(&v[k], &v[k + 4]);
    }
    v[5] = multiply(v[5], (float2)(root, direction * root));
    v[6] = turn_quarter(v[6], direction);
    v[7] = multiply(v[7], (float2)(-root, direction * root));
    transform_four(&v[0], &v[1], &v[2], &v[3], direction);
    transform_four(&v[4], &v[5], &v[6], &v[7], direction);
    // The results lie in the order 0, 4, 2, 6, 1, 5, 3, 7.
    const float2 second = v[1];
    const float2 fourth = v[3];
    v[1] = v[4];
    v[4] = second;
    v[3] = v[6];
    v[6] = fourth;
}

// Multiplies number k by the k-th power of the root at this angle.
inline void turn(float2 v[8], const float angle)
{
    const float2 root = (float2)(cos(angle), sin(angle));
    const float2 square = multiply(root, root);
    const float2 fourth = multiply(square, square);
    const float2 cube = multiply(square, root);
    v[1] = multiply(v[1], root);
    v[2] = multiply(v[2], square);
    v[3] = multiply(v[3], cube);
    v[4] = multiply(v[4], fourth);
    v[5] = multiply(v[5], multiply(fourth, root));
    v[6] = multiply(v[6], multiply(fourth, square));
    v[7] = multiply(v[7], multiply(fourth, cube));
}

// Stores numbers `put_step` apart and loads others `get_step` apart; real parts, then imaginary
// ones, so that half as much local memory will do.
inline void exchange(float2 v[8], __local float *room, const int put, const int put_step,
                     const int get, const int get_step)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 8; ++k) {
        room[put + k * put_step] = v[k].x;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 8; ++k) {
        v[k].x = room[get + k * get_step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 8; ++k) {
        room[put + k * put_step] = v[k].y;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 8; ++k) {
        v[k].y = room[get + k * get_step];
    }
}

inline void transform(__global const float2 *source, __global float2 *target,
                      __local float *room, const float direction, const float scale)
{
    const int lane = get_local_id(0);
    const int high = lane / 8;
    const int low = lane % 8;
    const size_t begin = get_group_id(0) * (size_t)LENGTH + lane;
    const float circle = direction * 6.28318530717958648f;

    float2 v[8];
    for (int k = 0; k < 8; ++k) {
        v[k] = source[begin + k * LANES];
    }
    transform_eight(v, direction);
    turn(v, circle * lane / LENGTH);
    exchange(v, room, lane, PITCH, high * PITCH + low, 8);
    transform_eight(v, direction);
    turn(v, circle * low / 64);
    exchange(v, room, low * PITCH + high, 8, lane, PITCH);
    transform_eight(v, direction);
    for (int k = 0; k < 8; ++k) {
        target[begin + k * LANES] = v[k] * scale;
    }
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void fft1d_512(__global const float2 *restrict source, __global float2 *restrict target)
{
    __local float room[8 * PITCH];
    transform(source, target, room, FORWARD, 1.0f);
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void ifft1d_512(__global const float2 *restrict source, __global float2 *restrict target)
{
    __local float room[8 * PITCH];
    transform(source, target, room, BACKWARD, 1.0f / LENGTH);
}
