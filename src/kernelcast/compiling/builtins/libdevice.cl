// Math functions by libdevice, NVIDIA's own library of them.
#define OVERLOADED __attribute__((overloadable))
#define CONST __attribute__((overloadable, const))
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
    }
#define MATH1(name)                                                                              \
    float __nv_##name##f(float);                                                                 \
    double __nv_##name(double);                                                                  \
    CONST float name(float x) { return __nv_##name##f(x); }                                      \
    CONST double name(double x) { return __nv_##name(x); }                                       \
    LANES1(name, float, float)                                                                   \
    LANES1(name, double, double)
#define MATH2(name)                                                                              \
    float __nv_##name##f(float, float);                                                          \
    double __nv_##name(double, double);                                                          \
    CONST float name(float x, float y) { return __nv_##name##f(x, y); }                          \
    CONST double name(double x, double y) { return __nv_##name(x, y); }                          \
    LANES2(name, float, float)                                                                   \
    LANES2(name, double, double)
#define HALF(name) CONST float half_##name(float x) { return name(x); }
MATH1(sin) MATH1(cos) MATH1(tan) MATH1(sinpi) MATH1(cospi) MATH1(asin) MATH1(acos) MATH1(atan)
MATH1(sinh) MATH1(cosh) MATH1(tanh) MATH1(asinh) MATH1(acosh) MATH1(atanh)
MATH1(exp) MATH1(exp2) MATH1(exp10) MATH1(expm1) MATH1(log) MATH1(log2) MATH1(log10) MATH1(log1p)
MATH1(logb) MATH1(cbrt) MATH1(erf) MATH1(erfc) MATH1(tgamma) MATH1(lgamma)
MATH2(pow) MATH2(atan2) MATH2(fmod) MATH2(remainder) MATH2(hypot) MATH2(nextafter)
HALF(sin) HALF(cos) HALF(tan) HALF(exp) HALF(exp2) HALF(log) HALF(log2) HALF(log10)
CONST float powr(float x, float y) { return __nv_powf(x, y); }
CONST double powr(double x, double y) { return __nv_pow(x, y); }
LANES2(powr, float, float)
float __nv_powif(float, int);
double __nv_powi(double, int);
float __nv_ldexpf(float, int);
double __nv_ldexp(double, int);
int __nv_ilogbf(float);
int __nv_ilogb(double);
CONST float pown(float x, int y) { return __nv_powif(x, y); }
CONST double pown(double x, int y) { return __nv_powi(x, y); }
CONST float ldexp(float x, int y) { return __nv_ldexpf(x, y); }
CONST double ldexp(double x, int y) { return __nv_ldexp(x, y); }
LANES2(ldexp, float, int)
CONST int ilogb(float x) { return __nv_ilogbf(x); }
CONST int ilogb(double x) { return __nv_ilogb(x); }

#define THROUGH_POINTER(space)                                                                   \
    OVERLOADED float sincos(float x, space float *cosine)                                        \
    {                                                                                            \
        *cosine = cos(x);                                                                        \
        return sin(x);                                                                           \
    }                                                                                            \
    OVERLOADED double sincos(double x, space double *cosine)                                     \
    {                                                                                            \
        *cosine = cos(x);                                                                        \
        return sin(x);                                                                           \
    }                                                                                            \
    OVERLOADED float modf(float x, space float *whole)                                           \
    {                                                                                            \
        *whole = __builtin_truncf(x);                                                            \
        return __builtin_copysignf(x - *whole, x);                                               \
    }                                                                                            \
    OVERLOADED float fract(float x, space float *whole)                                          \
    {                                                                                            \
        *whole = __builtin_floorf(x);                                                            \
        return __builtin_fminf(x - *whole, 0x1.fffffep-1f);                                      \
    }
THROUGH_POINTER(private)
THROUGH_POINTER(global)
THROUGH_POINTER(local)
