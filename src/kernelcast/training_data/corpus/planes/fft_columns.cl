// A radix-4 pass of Stockham's Fourier transform along the columns of a matrix: a work-item takes the
// same place of the four quarters of a column.
inline float2 multiply(const float2 a, const float2 b)
{
    return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__kernel void fft_columns(__global const float2 *restrict given, __global float2 *restrict passed_on,
                          const int passed)
{
    const size_t width = get_global_size(0);
    const size_t quarter = get_global_size(1) * width;
    const int row = get_global_id(1);
    const int k = row & (passed - 1);
    __global const float2 *from = given + row * width + get_global_id(0);
    __global float2 *to = passed_on + ((size_t)(row - k) * 4 + k) * width + get_global_id(0);

    float cosine;
    const float sine = sincos(-1.5707963267948966f * k / passed, &cosine);
    const float2 once = (float2)(cosine, sine);
    const float2 twice = multiply(once, once);
    const float2 a = from[0];
    const float2 b = multiply(from[quarter], once);
    const float2 c = multiply(from[2 * quarter], twice);
    const float2 d = multiply(from[3 * quarter], multiply(twice, once));
    const float2 even = a + c;
    const float2 odd = a - c;
    const float2 sum = b + d;
    // times minus i
    const float2 turned = (float2)(b.y - d.y, d.x - b.x);
    const size_t step = passed * width;
    to[0] = even + sum;
    to[step] = odd + turned;
    to[2 * step] = even - sum;
    to[3 * step] = odd - turned;
}
