// Built-in functions that any processor computes alike: arithmetic, conversions, vector loads,
// atomics. Math functions come from libdevice or libclc; see the list in `libraries`.
#define OVERLOADED __attribute__((overloadable))
#define CONST __attribute__((overloadable, const))

// Vectors are computed by halves, a vector of three by its elements.
#define LANES1(name, result, type)                                                               \
    CONST result##2 name(type##2 x) { return (result##2)(name(x.x), name(x.y)); }                \
    CONST result##3 name(type##3 x) { return (result##3)(name(x.x), name(x.y), name(x.z)); }     \
    CONST result##4 name(type##4 x) { return (result##4)(name(x.lo), name(x.hi)); }              \
    CONST result##8 name(type##8 x) { return (result##8)(name(x.lo), name(x.hi)); }              \
    CONST result##16 name(type##16 x) { return (result##16)(name(x.lo), name(x.hi)); }
#define LANES2(name, type, other)                                                                \
    CONST type##2 name(type##2 x, other##2 y) { return (type##2)(name(x.x, y.x), name(x.y, y.y)); } \
    CONST type##3 name(type##3 x, other##3 y)                                                    \
    {                                                                                            \
        return (type##3)(name(x.x, y.x), name(x.y, y.y), name(x.z, y.z));                        \
    }                                                                                            \
    CONST type##4 name(type##4 x, other##4 y)                                                    \
    {                                                                                            \
        return (type##4)(name(x.lo, y.lo), name(x.hi, y.hi));                                    \
    }                                                                                            \
    CONST type##8 name(type##8 x, other##8 y)                                                    \
    {                                                                                            \
        return (type##8)(name(x.lo, y.lo), name(x.hi, y.hi));                                    \
    }                                                                                            \
    CONST type##16 name(type##16 x, other##16 y)                                                 \
    {                                                                                            \
        return (type##16)(name(x.lo, y.lo), name(x.hi, y.hi));                                   \
    }
#define LANES3(name, type, third)                                                                \
    CONST type##2 name(type##2 x, type##2 y, third##2 z)                                         \
    {                                                                                            \
        return (type##2)(name(x.x, y.x, z.x), name(x.y, y.y, z.y));                              \
    }                                                                                            \
    CONST type##3 name(type##3 x, type##3 y, third##3 z)                                         \
    {                                                                                            \
        return (type##3)(name(x.x, y.x, z.x), name(x.y, y.y, z.y), name(x.z, y.z, z.z));         \
    }                                                                                            \
    CONST type##4 name(type##4 x, type##4 y, third##4 z)                                         \
    {                                                                                            \
        return (type##4)(name(x.lo, y.lo, z.lo), name(x.hi, y.hi, z.hi));                        \
    }                                                                                            \
    CONST type##8 name(type##8 x, type##8 y, third##8 z)                                         \
    {                                                                                            \
        return (type##8)(name(x.lo, y.lo, z.lo), name(x.hi, y.hi, z.hi));                        \
    }                                                                                            \
    CONST type##16 name(type##16 x, type##16 y, third##16 z)                                     \
    {                                                                                            \
        return (type##16)(name(x.lo, y.lo, z.lo), name(x.hi, y.hi, z.hi));                       \
    }
// The second argument may be one number for all lanes.
#define SCALAR2(name, type)                                                                      \
    CONST type##2 name(type##2 x, type y) { return name(x, (type##2)(y)); }                      \
    CONST type##3 name(type##3 x, type y) { return name(x, (type##3)(y)); }                      \
    CONST type##4 name(type##4 x, type y) { return name(x, (type##4)(y)); }                      \
    CONST type##8 name(type##8 x, type y) { return name(x, (type##8)(y)); }                      \
    CONST type##16 name(type##16 x, type y) { return name(x, (type##16)(y)); }
#define SCALAR23(name, type)                                                                     \
    CONST type##2 name(type##2 x, type y, type z) { return name(x, (type##2)(y), (type##2)(z)); } \
    CONST type##3 name(type##3 x, type y, type z) { return name(x, (type##3)(y), (type##3)(z)); } \
    CONST type##4 name(type##4 x, type y, type z) { return name(x, (type##4)(y), (type##4)(z)); } \
    CONST type##8 name(type##8 x, type y, type z) { return name(x, (type##8)(y), (type##8)(z)); } \
    CONST type##16 name(type##16 x, type y, type z)                                              \
    {                                                                                            \
        return name(x, (type##16)(y), (type##16)(z));                                            \
    }
#define SCALAR3(name, type)                                                                      \
    CONST type##2 name(type##2 x, type##2 y, type z) { return name(x, y, (type##2)(z)); }        \
    CONST type##3 name(type##3 x, type##3 y, type z) { return name(x, y, (type##3)(z)); }        \
    CONST type##4 name(type##4 x, type##4 y, type z) { return name(x, y, (type##4)(z)); }        \
    CONST type##8 name(type##8 x, type##8 y, type z) { return name(x, y, (type##8)(z)); }        \
    CONST type##16 name(type##16 x, type##16 y, type z) { return name(x, y, (type##16)(z)); }

#define ONE(name, type, value)                                                                   \
    CONST type name(type x) { return value; }                                                    \
    LANES1(name, type, type)
#define TWO(name, type, value)                                                                   \
    CONST type name(type x, type y) { return value; }                                            \
    LANES2(name, type, type)
#define THREE(name, type, value)                                                                 \
    CONST type name(type x, type y, type z) { return value; }                                    \
    LANES3(name, type, type)

// Integers (6.15.3).
#define INTEGER(type, unsigned_type)                                                             \
    TWO(min, type, y < x ? y : x)                                                                \
    SCALAR2(min, type)                                                                           \
    TWO(max, type, y > x ? y : x)                                                                \
    SCALAR2(max, type)                                                                           \
    THREE(clamp, type, x < y ? y : x > z ? z : x)                                                \
    SCALAR23(clamp, type)                                                                        \
    TWO(rotate, type,                                                                            \
        (type)((unsigned_type)x << (y & (8 * sizeof(x) - 1))                                     \
               | (unsigned_type)x >> (-y & (8 * sizeof(x) - 1))))                                \
    TWO(hadd, type, (x >> 1) + (y >> 1) + (x & y & 1))                                           \
    TWO(rhadd, type, (x >> 1) + (y >> 1) + ((x | y) & 1))                                        \
    CONST unsigned_type abs(type x) { return x < 0 ? -(unsigned_type)x : (unsigned_type)x; }     \
    LANES1(abs, unsigned_type, type)                                                             \
    CONST unsigned_type abs_diff(type x, type y)                                                 \
    {                                                                                            \
        return x < y ? (unsigned_type)y - (unsigned_type)x : (unsigned_type)x - (unsigned_type)y; \
    }                                                                                            \
    THREE(bitselect, type, (x & ~z) | (y & z))
INTEGER(char, uchar)
INTEGER(uchar, uchar)
INTEGER(short, ushort)
INTEGER(ushort, ushort)
INTEGER(int, uint)
INTEGER(uint, uint)
INTEGER(long, ulong)
INTEGER(ulong, ulong)
#define COUNT(type, ones, zeros, trailing)                                                       \
    ONE(popcount, type, ones)                                                                    \
    ONE(clz, type, zeros)                                                                        \
    ONE(ctz, type, trailing)
COUNT(int, __builtin_popcount(x), x ? __builtin_clz(x) : 32, x ? __builtin_ctz(x) : 32)
COUNT(uint, __builtin_popcount(x), x ? __builtin_clz(x) : 32, x ? __builtin_ctz(x) : 32)
COUNT(long, __builtin_popcountl(x), x ? __builtin_clzl(x) : 64, x ? __builtin_ctzl(x) : 64)
COUNT(ulong, __builtin_popcountl(x), x ? __builtin_clzl(x) : 64, x ? __builtin_ctzl(x) : 64)
TWO(mul24, int, ((x << 8) >> 8) * ((y << 8) >> 8))
TWO(mul24, uint, (x & 0xffffff) * (y & 0xffffff))
THREE(mad24, int, ((x << 8) >> 8) * ((y << 8) >> 8) + z)
THREE(mad24, uint, (x & 0xffffff) * (y & 0xffffff) + z)
CONST uint mul_hi(uint x, uint y) { return ((ulong)x * y) >> 32; }
CONST int mul_hi(int x, int y) { return ((long)x * y) >> 32; }
CONST ulong mul_hi(ulong x, ulong y)
{
    ulong low = (x & UINT_MAX) * (y & UINT_MAX), middle = (x >> 32) * (y & UINT_MAX) + (low >> 32);
    ulong other = (x & UINT_MAX) * (y >> 32) + (middle & UINT_MAX);
    return (x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32);
}
CONST long mul_hi(long x, long y)
{
    return as_long(mul_hi(as_ulong(x), as_ulong(y))) - (x < 0 ? y : 0) - (y < 0 ? x : 0);
}
LANES2(mul_hi, int, int)
LANES2(mul_hi, uint, uint)
#define SATURATED(type, wide, least, most)                                                       \
    TWO(add_sat, type, (type)clamp((wide)x + (wide)y, (wide)(least), (wide)(most)))              \
    TWO(sub_sat, type, (type)clamp((wide)x - (wide)y, (wide)(least), (wide)(most)))
SATURATED(char, int, SCHAR_MIN, SCHAR_MAX)
SATURATED(uchar, int, 0, UCHAR_MAX)
SATURATED(short, int, SHRT_MIN, SHRT_MAX)
SATURATED(ushort, int, 0, USHRT_MAX)
SATURATED(int, long, INT_MIN, INT_MAX)
SATURATED(uint, long, 0, UINT_MAX)

// Floating point (6.15.2, 6.15.4, 6.15.5): what needs no tables.
#define FLOATING(type, integer, f)                                                               \
    ONE(fabs, type, __builtin_fabs##f(x))                                                        \
    ONE(sqrt, type, __builtin_sqrt##f(x))                                                        \
    ONE(floor, type, __builtin_floor##f(x))                                                      \
    ONE(ceil, type, __builtin_ceil##f(x))                                                        \
    ONE(trunc, type, __builtin_trunc##f(x))                                                      \
    ONE(rint, type, __builtin_rint##f(x))                                                        \
    ONE(round, type,                                                                             \
        __builtin_copysign##f(__builtin_trunc##f(__builtin_fabs##f(x) + (type)0.5), x))          \
    ONE(degrees, type, x * (type)(180 / M_PI))                                                   \
    ONE(radians, type, x * (type)(M_PI / 180))                                                   \
    ONE(sign, type, x > 0 ? (type)1 : x < 0 ? (type)-1 : x == 0 ? x : (type)0)                   \
    TWO(fmin, type, __builtin_fmin##f(x, y))                                                     \
    SCALAR2(fmin, type)                                                                          \
    TWO(fmax, type, __builtin_fmax##f(x, y))                                                     \
    SCALAR2(fmax, type)                                                                          \
    TWO(min, type, y < x ? y : x)                                                                \
    SCALAR2(min, type)                                                                           \
    TWO(max, type, x < y ? y : x)                                                                \
    SCALAR2(max, type)                                                                           \
    TWO(copysign, type, __builtin_copysign##f(x, y))                                             \
    TWO(fdim, type, x > y ? x - y : (type)0)                                                     \
    TWO(step, type, y < x ? (type)0 : (type)1)                                                   \
    THREE(fma, type, __builtin_fma##f(x, y, z))                                                  \
    THREE(mad, type, __builtin_fma##f(x, y, z))                                                  \
    THREE(clamp, type, __builtin_fmin##f(__builtin_fmax##f(x, y), z))                            \
    SCALAR23(clamp, type)                                                                        \
    THREE(mix, type, __builtin_fma##f(y - x, z, x))                                              \
    SCALAR3(mix, type)                                                                           \
    CONST type smoothstep(type low, type high, type x)                                           \
    {                                                                                            \
        type t = clamp((x - low) / (high - low), (type)0, (type)1);                              \
        return t * t * (3 - 2 * t);                                                              \
    }                                                                                            \
    CONST type dot(type x, type y) { return x * y; }                                             \
    CONST type dot(type##2 x, type##2 y) { return fma(x.x, y.x, x.y * y.y); }                    \
    CONST type dot(type##3 x, type##3 y) { return fma(x.x, y.x, fma(x.y, y.y, x.z * y.z)); }     \
    CONST type dot(type##4 x, type##4 y)                                                         \
    {                                                                                            \
        return fma(x.x, y.x, fma(x.y, y.y, fma(x.z, y.z, x.w * y.w)));                           \
    }                                                                                            \
    CONST type##3 cross(type##3 x, type##3 y) { return x.yzx * y.zxy - x.zxy * y.yzx; }          \
    CONST type##4 cross(type##4 x, type##4 y) { return (type##4)(cross(x.xyz, y.xyz), 0); }      \
    GEOMETRY(type, type, f)                                                                      \
    GEOMETRY(type, type##2, f)                                                                   \
    GEOMETRY(type, type##3, f)                                                                   \
    GEOMETRY(type, type##4, f)                                                                   \
    CONST int isnan(type x) { return x != x; }                                                   \
    CONST int isinf(type x) { return __builtin_fabs##f(x) == (type)INFINITY; }                   \
    CONST int isfinite(type x) { return __builtin_fabs##f(x) < (type)INFINITY; }                 \
    CONST int signbit(type x) { return as_##integer(x) < 0; }                                    \
    CONST int isequal(type x, type y) { return x == y; }                                         \
    CONST int isless(type x, type y) { return x < y; }                                           \
    CONST int isgreater(type x, type y) { return x > y; }
#define GEOMETRY(type, vector, f)                                                                \
    CONST type length(vector x) { return __builtin_sqrt##f(dot(x, x)); }                         \
    CONST type fast_length(vector x) { return __builtin_sqrt##f(dot(x, x)); }                    \
    CONST type distance(vector x, vector y) { return length(x - y); }                            \
    CONST type fast_distance(vector x, vector y) { return length(x - y); }                       \
    CONST vector normalize(vector x) { return x / length(x); }                                   \
    CONST vector fast_normalize(vector x) { return x / length(x); }
FLOATING(float, int, f)
FLOATING(double, long, )

// Selection and tests of lanes (6.15.6).
#define SELECT(type, index)                                                                      \
    CONST type select(type x, type y, index z) { return z ? y : x; }                             \
    CONST type##2 select(type##2 x, type##2 y, index##2 z) { return z < (index)0 ? y : x; }      \
    CONST type##3 select(type##3 x, type##3 y, index##3 z) { return z < (index)0 ? y : x; }      \
    CONST type##4 select(type##4 x, type##4 y, index##4 z) { return z < (index)0 ? y : x; }      \
    CONST type##8 select(type##8 x, type##8 y, index##8 z) { return z < (index)0 ? y : x; }      \
    CONST type##16 select(type##16 x, type##16 y, index##16 z) { return z < (index)0 ? y : x; }
#define SELECT_UNSIGNED(type, index, as)                                                         \
    CONST type select(type x, type y, index z) { return z ? y : x; }                             \
    CONST type##2 select(type##2 x, type##2 y, index##2 z) { return select(x, y, as##2(z)); }    \
    CONST type##3 select(type##3 x, type##3 y, index##3 z) { return select(x, y, as##3(z)); }    \
    CONST type##4 select(type##4 x, type##4 y, index##4 z) { return select(x, y, as##4(z)); }    \
    CONST type##8 select(type##8 x, type##8 y, index##8 z) { return select(x, y, as##8(z)); }    \
    CONST type##16 select(type##16 x, type##16 y, index##16 z) { return select(x, y, as##16(z)); }
#define BOTH(type, index, unsigned_index)                                                        \
    SELECT(type, index)                                                                          \
    SELECT_UNSIGNED(type, unsigned_index, as_##index)
BOTH(char, char, uchar)
BOTH(uchar, char, uchar)
BOTH(short, short, ushort)
BOTH(ushort, short, ushort)
BOTH(int, int, uint)
BOTH(uint, int, uint)
BOTH(float, int, uint)
BOTH(long, long, ulong)
BOTH(ulong, long, ulong)
BOTH(double, long, ulong)
#define LANE_TESTS(type)                                                                         \
    CONST int any(type x) { return x < 0; }                                                      \
    CONST int any(type##2 x) { return any(x.x) | any(x.y); }                                     \
    CONST int any(type##3 x) { return any(x.xy) | any(x.z); }                                    \
    CONST int any(type##4 x) { return any(x.lo) | any(x.hi); }                                   \
    CONST int any(type##8 x) { return any(x.lo) | any(x.hi); }                                   \
    CONST int all(type x) { return x < 0; }                                                      \
    CONST int all(type##2 x) { return all(x.x) & all(x.y); }                                     \
    CONST int all(type##3 x) { return all(x.xy) & all(x.z); }                                    \
    CONST int all(type##4 x) { return all(x.lo) & all(x.hi); }                                   \
    CONST int all(type##8 x) { return all(x.lo) & all(x.hi); }
LANE_TESTS(char)
LANE_TESTS(short)
LANE_TESTS(int)
LANE_TESTS(long)

// Conversions (6.4.3): rounding as the language's own; _sat of integers, _rte to integers.
#define CONVERT(to, name, from, lane)                                                            \
    CONST to name(from x) { return lane; }                                                       \
    CONST to##2 name##2(from##2 x) { return (to##2)(name(x.x), name(x.y)); }                     \
    CONST to##3 name##3(from##3 x) { return (to##3)(name(x.x), name(x.y), name(x.z)); }          \
    CONST to##4 name##4(from##4 x) { return (to##4)(name##2(x.lo), name##2(x.hi)); }             \
    CONST to##8 name##8(from##8 x) { return (to##8)(name##4(x.lo), name##4(x.hi)); }             \
    CONST to##16 name##16(from##16 x) { return (to##16)(name##8(x.lo), name##8(x.hi)); }
#define SUFFIXED(to, suffix, from, lane)                                                         \
    CONST to convert_##to##suffix(from x) { return lane; }                                       \
    CONST to##2 convert_##to##2##suffix(from##2 x)                                               \
    {                                                                                            \
        return (to##2)(convert_##to##suffix(x.x), convert_##to##suffix(x.y));                    \
    }                                                                                            \
    CONST to##3 convert_##to##3##suffix(from##3 x)                                               \
    {                                                                                            \
        return (to##3)(convert_##to##2##suffix(x.xy), convert_##to##suffix(x.z));                \
    }                                                                                            \
    CONST to##4 convert_##to##4##suffix(from##4 x)                                               \
    {                                                                                            \
        return (to##4)(convert_##to##2##suffix(x.lo), convert_##to##2##suffix(x.hi));            \
    }
#define FROM_ALL(to)                                                                             \
    CONVERT(to, convert_##to, char, (to)x)                                                       \
    CONVERT(to, convert_##to, uchar, (to)x)                                                      \
    CONVERT(to, convert_##to, short, (to)x)                                                      \
    CONVERT(to, convert_##to, ushort, (to)x)                                                     \
    CONVERT(to, convert_##to, int, (to)x)                                                        \
    CONVERT(to, convert_##to, uint, (to)x)                                                       \
    CONVERT(to, convert_##to, long, (to)x)                                                       \
    CONVERT(to, convert_##to, ulong, (to)x)                                                      \
    CONVERT(to, convert_##to, float, (to)x)                                                      \
    CONVERT(to, convert_##to, double, (to)x)
FROM_ALL(char)
FROM_ALL(uchar)
FROM_ALL(short)
FROM_ALL(ushort)
FROM_ALL(int)
FROM_ALL(uint)
FROM_ALL(long)
FROM_ALL(ulong)
FROM_ALL(float)
FROM_ALL(double)
#define WITHIN(x, least, most) ((x) <= (least) ? (least) : (x) >= (most) ? (most) : (x))
#define TO_SMALL(to, least, most)                                                                \
    SUFFIXED(to, _sat, short, (to)WITHIN((int)x, least, most))                                   \
    SUFFIXED(to, _sat, int, (to)WITHIN((long)x, (long)(least), (long)(most)))                    \
    SUFFIXED(to, _sat, uint, (to)WITHIN((long)x, (long)(least), (long)(most)))                   \
    SUFFIXED(to, _sat, float, x != x ? (to)0 : (to)WITHIN(x, (float)(least), (float)(most)))     \
    SUFFIXED(to, _sat_rte, float, convert_##to##_sat(__builtin_rintf(x)))                        \
    SUFFIXED(to, _sat_rtz, float, convert_##to##_sat(x))                                         \
    SUFFIXED(to, _rtz, float, (to)x)                                                             \
    SUFFIXED(to, _rte, float, (to)__builtin_rintf(x))                                            \
    SUFFIXED(to, _rtp, float, (to)__builtin_ceilf(x))                                            \
    SUFFIXED(to, _rtn, float, (to)__builtin_floorf(x))
TO_SMALL(char, SCHAR_MIN, SCHAR_MAX)
TO_SMALL(uchar, 0, UCHAR_MAX)
TO_SMALL(short, SHRT_MIN, SHRT_MAX)
TO_SMALL(ushort, 0, USHRT_MAX)
SUFFIXED(int, _rtz, float, (int)x)
SUFFIXED(int, _rte, float, (int)__builtin_rintf(x))
SUFFIXED(int, _rtp, float, (int)__builtin_ceilf(x))
SUFFIXED(int, _rtn, float, (int)__builtin_floorf(x))
SUFFIXED(int, _sat, float, x != x ? 0 : x >= 0x1p31f ? INT_MAX : x < -0x1p31f ? INT_MIN : (int)x)
SUFFIXED(uint, _sat, float, !(x > 0) ? 0 : x >= 0x1p32f ? UINT_MAX : (uint)x)

// Vectors in memory (6.15.7): of the alignment of their elements.
#define LOAD(type, space, lanes)                                                                 \
    OVERLOADED type##lanes vload##lanes(size_t i, const space type *p)                           \
    {                                                                                            \
        return *(const space type##lanes##_anywhere *)(p + i * lanes);                           \
    }
#define STORE(type, space, lanes)                                                                \
    OVERLOADED void vstore##lanes(type##lanes x, size_t i, space type *p)                        \
    {                                                                                            \
        *(space type##lanes##_anywhere *)(p + i * lanes) = x;                                    \
    }
#define ANYWHERE(type)                                                                           \
    typedef type##2 type##2_anywhere __attribute__((aligned(sizeof(type))));                     \
    typedef type##4 type##4_anywhere __attribute__((aligned(sizeof(type))));                     \
    typedef type##8 type##8_anywhere __attribute__((aligned(sizeof(type))));                     \
    typedef type##16 type##16_anywhere __attribute__((aligned(sizeof(type))));
ANYWHERE(char)
ANYWHERE(uchar)
ANYWHERE(short)
ANYWHERE(ushort)
ANYWHERE(int)
ANYWHERE(uint)
ANYWHERE(long)
ANYWHERE(ulong)
ANYWHERE(float)
ANYWHERE(double)
#define LOADS(type, space)                                                                       \
    LOAD(type, space, 2)                                                                       \
    LOAD(type, space, 4)                                                                       \
    LOAD(type, space, 8)                                                                       \
    LOAD(type, space, 16)                                                                      \
    OVERLOADED type##3 vload3(size_t i, const space type *p)                                     \
    {                                                                                            \
        return (type##3)(p[3 * i], p[3 * i + 1], p[3 * i + 2]);                                  \
    }
#define STORES(type, space)                                                                      \
    STORE(type, space, 2)                                                                        \
    STORE(type, space, 4)                                                                        \
    STORE(type, space, 8)                                                                        \
    STORE(type, space, 16)                                                                       \
    OVERLOADED void vstore3(type##3 x, size_t i, space type *p)                                  \
    {                                                                                            \
        p[3 * i] = x.x;                                                                          \
        p[3 * i + 1] = x.y;                                                                      \
        p[3 * i + 2] = x.z;                                                                      \
    }
#define IN_SPACE(space)                                                                          \
    LOADS(char, space) STORES(char, space)                                                       \
    LOADS(uchar, space) STORES(uchar, space)                                                     \
    LOADS(short, space) STORES(short, space)                                                     \
    LOADS(ushort, space) STORES(ushort, space)                                                   \
    LOADS(int, space) STORES(int, space)                                                         \
    LOADS(uint, space) STORES(uint, space)                                                       \
    LOADS(long, space) STORES(long, space)                                                       \
    LOADS(ulong, space) STORES(ulong, space)                                                     \
    LOADS(float, space) STORES(float, space)                                                     \
    LOADS(double, space) STORES(double, space)                                                   \
    OVERLOADED float vload_half(size_t i, const space half *p) { return p[i]; }                  \
    OVERLOADED void vstore_half(float x, size_t i, space half *p) { p[i] = x; }
IN_SPACE(global)
IN_SPACE(local)
IN_SPACE(private)
#ifndef __NVPTX__  // private and generic pointers have one name there
IN_SPACE(generic)
#endif
LOADS(char, constant)
LOADS(uchar, constant)
LOADS(short, constant)
LOADS(ushort, constant)
LOADS(int, constant)
LOADS(uint, constant)
LOADS(long, constant)
LOADS(ulong, constant)
LOADS(float, constant)
LOADS(double, constant)
OVERLOADED float vload_half(size_t i, const constant half *p) { return p[i]; }

// Before clang 18 its atomics are calls on NVPTX; libclc's are not.
#if !defined(__NVPTX__) || __clang_major__ >= 18
// Atomics of OpenCL C 1.x (6.15.12.8) and their names before they were part of the language.
#define RELAXED memory_order_relaxed, memory_scope_device
#define ATOMIC(type, space, prefix)                                                              \
    OVERLOADED type prefix##_add(volatile space type *p, type x)                                 \
    {                                                                                            \
        return __opencl_atomic_fetch_add((volatile space atomic_##type *)p, x, RELAXED);         \
    }                                                                                            \
    OVERLOADED type prefix##_sub(volatile space type *p, type x)                                 \
    {                                                                                            \
        return __opencl_atomic_fetch_sub((volatile space atomic_##type *)p, x, RELAXED);         \
    }                                                                                            \
    OVERLOADED type prefix##_inc(volatile space type *p) { return prefix##_add(p, (type)1); }    \
    OVERLOADED type prefix##_dec(volatile space type *p) { return prefix##_sub(p, (type)1); }    \
    OVERLOADED type prefix##_and(volatile space type *p, type x)                                 \
    {                                                                                            \
        return __opencl_atomic_fetch_and((volatile space atomic_##type *)p, x, RELAXED);         \
    }                                                                                            \
    OVERLOADED type prefix##_or(volatile space type *p, type x)                                  \
    {                                                                                            \
        return __opencl_atomic_fetch_or((volatile space atomic_##type *)p, x, RELAXED);          \
    }                                                                                            \
    OVERLOADED type prefix##_xor(volatile space type *p, type x)                                 \
    {                                                                                            \
        return __opencl_atomic_fetch_xor((volatile space atomic_##type *)p, x, RELAXED);         \
    }                                                                                            \
    OVERLOADED type prefix##_min(volatile space type *p, type x)                                 \
    {                                                                                            \
        return __opencl_atomic_fetch_min((volatile space atomic_##type *)p, x, RELAXED);         \
    }                                                                                            \
    OVERLOADED type prefix##_max(volatile space type *p, type x)                                 \
    {                                                                                            \
        return __opencl_atomic_fetch_max((volatile space atomic_##type *)p, x, RELAXED);         \
    }                                                                                            \
    OVERLOADED type prefix##_xchg(volatile space type *p, type x)                                \
    {                                                                                            \
        return __opencl_atomic_exchange((volatile space atomic_##type *)p, x, RELAXED);          \
    }                                                                                            \
    OVERLOADED type prefix##_cmpxchg(volatile space type *p, type expected, type x)              \
    {                                                                                            \
        __opencl_atomic_compare_exchange_strong((volatile space atomic_##type *)p, &expected, x, \
                                                memory_order_relaxed, RELAXED);                  \
        return expected;                                                                         \
    }
#define ATOMIC_FLOAT(space)                                                                      \
    OVERLOADED float atomic_xchg(volatile space float *p, float x)                               \
    {                                                                                            \
        return as_float(atomic_xchg((volatile space int *)p, as_int(x)));                        \
    }
ATOMIC(int, global, atomic)
ATOMIC(uint, global, atomic)
ATOMIC(int, local, atomic)
ATOMIC(uint, local, atomic)
ATOMIC(int, global, atom)
ATOMIC(uint, global, atom)
ATOMIC(int, local, atom)
ATOMIC(uint, local, atom)
ATOMIC(long, global, atom)
ATOMIC(ulong, global, atom)
ATOMIC(long, local, atom)
ATOMIC(ulong, local, atom)
ATOMIC(int, generic, atomic)
ATOMIC(uint, generic, atomic)
ATOMIC_FLOAT(global)
ATOMIC_FLOAT(local)
ATOMIC_FLOAT(generic)

// Atomics of OpenCL C 2.0 on generic pointers, and on named ones where there are none.
#define FETCH(type, value, space, name)                                                          \
    OVERLOADED value atomic_fetch_##name##_explicit(volatile space type *p, value x,             \
                                                    memory_order order, memory_scope scope)      \
    {                                                                                            \
        return __opencl_atomic_fetch_##name(p, x, order, scope);                                 \
    }                                                                                            \
    OVERLOADED value atomic_fetch_##name##_explicit(volatile space type *p, value x,             \
                                                    memory_order order)                          \
    {                                                                                            \
        return __opencl_atomic_fetch_##name(p, x, order, memory_scope_device);                   \
    }                                                                                            \
    OVERLOADED value atomic_fetch_##name(volatile space type *p, value x)                        \
    {                                                                                            \
        return __opencl_atomic_fetch_##name(p, x, memory_order_seq_cst, memory_scope_device);    \
    }
#define ACCESS(type, value, space)                                                               \
    OVERLOADED void atomic_init(volatile space type *p, value x)                                 \
    {                                                                                            \
        *(volatile space value *)p = x;                                                          \
    }                                                                                            \
    OVERLOADED value atomic_load_explicit(volatile space type *p, memory_order order,            \
                                          memory_scope scope)                                    \
    {                                                                                            \
        return __opencl_atomic_load(p, order, scope);                                            \
    }                                                                                            \
    OVERLOADED value atomic_load_explicit(volatile space type *p, memory_order order)            \
    {                                                                                            \
        return __opencl_atomic_load(p, order, memory_scope_device);                              \
    }                                                                                            \
    OVERLOADED value atomic_load(volatile space type *p)                                         \
    {                                                                                            \
        return __opencl_atomic_load(p, memory_order_seq_cst, memory_scope_device);               \
    }                                                                                            \
    OVERLOADED void atomic_store_explicit(volatile space type *p, value x, memory_order order,   \
                                          memory_scope scope)                                    \
    {                                                                                            \
        __opencl_atomic_store(p, x, order, scope);                                               \
    }                                                                                            \
    OVERLOADED void atomic_store_explicit(volatile space type *p, value x, memory_order order)   \
    {                                                                                            \
        __opencl_atomic_store(p, x, order, memory_scope_device);                                 \
    }                                                                                            \
    OVERLOADED void atomic_store(volatile space type *p, value x)                                \
    {                                                                                            \
        __opencl_atomic_store(p, x, memory_order_seq_cst, memory_scope_device);                  \
    }                                                                                            \
    OVERLOADED value atomic_exchange_explicit(volatile space type *p, value x,                   \
                                              memory_order order, memory_scope scope)            \
    {                                                                                            \
        return __opencl_atomic_exchange(p, x, order, scope);                                     \
    }                                                                                            \
    OVERLOADED value atomic_exchange_explicit(volatile space type *p, value x,                   \
                                              memory_order order)                                \
    {                                                                                            \
        return __opencl_atomic_exchange(p, x, order, memory_scope_device);                       \
    }                                                                                            \
    OVERLOADED value atomic_exchange(volatile space type *p, value x)                            \
    {                                                                                            \
        return __opencl_atomic_exchange(p, x, memory_order_seq_cst, memory_scope_device);        \
    }                                                                                            \
    EXCHANGE(type, value, space, space, strong)                                                  \
    EXCHANGE(type, value, space, space, weak)
#define EXCHANGE(type, value, space, other, how)                                                 \
    OVERLOADED bool atomic_compare_exchange_##how##_explicit(                                    \
        volatile space type *p, other value *expected, value x, memory_order success,            \
        memory_order failure, memory_scope scope)                                                \
    {                                                                                            \
        return __opencl_atomic_compare_exchange_##how(p, expected, x, success, failure, scope);  \
    }                                                                                            \
    OVERLOADED bool atomic_compare_exchange_##how##_explicit(                                    \
        volatile space type *p, other value *expected, value x, memory_order success,            \
        memory_order failure)                                                                    \
    {                                                                                            \
        return __opencl_atomic_compare_exchange_##how(p, expected, x, success, failure,          \
                                                      memory_scope_device);                      \
    }                                                                                            \
    OVERLOADED bool atomic_compare_exchange_##how(volatile space type *p, other value *expected, \
                                                  value x)                                       \
    {                                                                                            \
        return __opencl_atomic_compare_exchange_##how(p, expected, x, memory_order_seq_cst,      \
                                                      memory_order_seq_cst, memory_scope_device); \
    }
#define WHOLE(type, value, space)                                                                \
    ACCESS(type, value, space)                                                                   \
    FETCH(type, value, space, add)                                                               \
    FETCH(type, value, space, sub)                                                               \
    FETCH(type, value, space, and)                                                               \
    FETCH(type, value, space, or)                                                                \
    FETCH(type, value, space, xor)                                                               \
    FETCH(type, value, space, min)                                                               \
    FETCH(type, value, space, max)
#define ATOMICS_IN(space)                                                                        \
    WHOLE(atomic_int, int, space)                                                                \
    WHOLE(atomic_uint, uint, space)                                                              \
    WHOLE(atomic_long, long, space)                                                              \
    WHOLE(atomic_ulong, ulong, space)                                                            \
    ACCESS(atomic_float, float, space)
ATOMICS_IN(generic)
ATOMICS_IN(global)
ATOMICS_IN(local)
#endif

OVERLOADED void mem_fence(cl_mem_fence_flags flags);
OVERLOADED void atomic_work_item_fence(cl_mem_fence_flags flags, memory_order order,
                                       memory_scope scope)
{
    mem_fence(scope > memory_scope_work_group ? CLK_GLOBAL_MEM_FENCE : CLK_LOCAL_MEM_FENCE);
}

OVERLOADED void prefetch(const global float *p, size_t count) {}
