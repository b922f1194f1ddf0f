"""A C program that runs a listing's loop again and again, and prints how long that took."""

from kernelcast.sampling.loop_benchmark.listing import Listing

_DRIVER = """
static double kc_now(clockid_t clock)
{{
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec + 1e-9 * at.tv_nsec;
}}

static void kc_fill(void)
{{
{fill}
}}

__attribute__((noinline)) static void kc_run(void)
{{
{scalars}
    {loop}
{keep}
}}

int main(int count, char **words)
{{
    const double least_s = count > 1 ? atof(words[1]) : 0.05;
    const int samples = count > 2 ? atoi(words[2]) : 5;
    kc_fill();
    kc_run();
    long repeats = 1;
    for (;;) {{ /* warm up, and find how many passes are long enough */
        const double start = kc_now(CLOCK_MONOTONIC);
        for (long pass = 0; pass < repeats; ++pass) {{
            kc_run();
            __asm__ volatile("" ::: "memory");
        }}
        const double passed = kc_now(CLOCK_MONOTONIC) - start;
        if (passed >= least_s || repeats >= 1L << 40)
            break;
        const double wanted = 1.2 * least_s / (passed > 1e-9 ? passed : 1e-9);
        repeats = (long)(repeats * (wanted < 2 ? 2 : wanted > 100 ? 100 : wanted)) + 1;
    }}
    for (int sample = 0; sample < samples; ++sample) {{
        const double start = kc_now(CLOCK_MONOTONIC);
        const double cpu = kc_now(CLOCK_PROCESS_CPUTIME_ID);
        for (long pass = 0; pass < repeats; ++pass) {{
            kc_run();
            __asm__ volatile("" ::: "memory");
        }}
        const double cpu_s = kc_now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        printf("%.9e %.9e\\n", (kc_now(CLOCK_MONOTONIC) - start) / repeats, cpu_s / repeats);
    }}
    return 0;
}}
"""


def write_program(listing: Listing) -> str:
    """Write the program.

    Arrays stand at file scope, where they may be large, and are filled first: pages that were
    never written all are one page of zeros, which every cache holds. Scalars are local variables
    whose values the compiler does not know.

    Examples
    --------
    >>> from kernelcast.sampling.loop_benchmark.listing import take_apart
    >>> text = write_program(take_apart("float a[N]; for (int i = 0; i < N; ++i) a[i] = 1.f;"))
    >>> "static float a[N]" in text
    True
    """
    head = [
        "#define _POSIX_C_SOURCE 200809L",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <time.h>",
        *listing.directives,
        "volatile double kc_value = 0.5, kc_sink;",
    ]
    arrays = [
        f"static {one.type_name} {one.name}{one.dimensions} __attribute__((aligned(64)));"
        for one in listing.arrays
    ]
    fill = [
        f"    for (size_t n = 0; n < sizeof {one.name} / sizeof({one.type_name}); ++n)\n"
        f"        (({one.type_name} *){one.name})[n] = ({one.type_name})(1 + n % 7 * kc_value);"
        for one in listing.arrays
    ]
    scalars = [
        f"    {one.type_name} {one.name} = {one.value or f'({one.type_name})kc_value'};"
        for one in listing.scalars
    ]
    keep = [f"    kc_sink = (double){one.name};" for one in listing.scalars]
    body = _DRIVER.format(
        fill="\n".join(fill), scalars="\n".join(scalars), loop=listing.loop, keep="\n".join(keep)
    )
    return "\n".join([*head, *arrays, body])
