"""GPUs as the reference implementation of the Warpspeed paper lists them (March 2025)."""

from dataclasses import dataclass, field

TABLE = "device table of the Warpspeed reference implementation (March 2025)"
CUDA = "CUDA C++ Programming Guide, table of compute capabilities: {}"
KIB = 2**10
CDNA_REGISTERS = 4 * 512 * 64
CDNA_DOCUMENT = (
    "AMD CDNA 2 and 3 ISA documents: 512 of 64 lanes for each of four SIMDs, accumulation "
    "registers among them"
)


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A GPU's row of the table; `cc` is NVIDIA's compute capability, `data` the key in the data."""

    file: str
    name: str
    data: str
    units: int
    clock_ghz: float | None
    l1_kib: int
    l2_mib: float
    l2_gb_s: float | None
    lanes: tuple[int, int] | None
    cc: str = ""
    warp: int = 32
    line: int = 128
    l1_sector: int = 32
    l2_sector: int = 64
    l2_shared_by: int | None = None
    dispatch: tuple[float, str] | None = None
    origins: dict[str, str] = field(default_factory=dict)
    items: int | None = None
    registers: int | None = None
    local_kib: int | None = None


NVIDIA = {
    # work-items, work-groups and local memory (KiB) of a compute unit
    "7.0": (2048, 32, 96), "8.0": (2048, 32, 164), "8.6": (1536, 16, 100), "8.9": (1536, 24, 100),
    "9.0": (2048, 32, 228),
}  # fmt: skip
HALF_L2 = "effective; {} MiB in two halves, " + TABLE
GPUS = (
    Gpu(file="v100", name="Tesla V100-PCIE-32GB", data="v100", units=80, clock_ghz=1.38,
        l1_kib=128, l2_mib=6, l2_gb_s=2300, lanes=(64, 32), cc="7.0",
        dispatch=(1.56e-9, "a 2-D box stencil that L1 holds makes 20.5 G updates a second with "
                  "32 work-items per work-group of any shape, 41 with 64; "
                  "te42kyfo/warpspeed@7e804a7")),
    Gpu(file="a100", name="A100-SXM4-40GB", data="a100_40", units=108, clock_ghz=1.41, l1_kib=192,
        l2_mib=20, l2_gb_s=4000, lanes=(64, 32), cc="8.0",
        origins={"L2": HALF_L2.format(40)}),
    Gpu(file="a100-80gb", name="A100-SXM4-80GB", data="a100_80", units=108, clock_ghz=1.41,
        l1_kib=192, l2_mib=20, l2_gb_s=4000, lanes=(64, 32), cc="8.0",
        origins={"L2": HALF_L2.format(40)}),
    Gpu(file="a40", name="A40", data="a40", units=84, clock_ghz=1.74, l1_kib=128, l2_mib=6,
        l2_gb_s=2900, lanes=(128, 2), cc="8.6", l2_sector=32),
    Gpu(file="l40", name="L40", data="l40", units=142, clock_ghz=2.49, l1_kib=128, l2_mib=96,
        l2_gb_s=4300, lanes=(128, 2), cc="8.9", l2_sector=32),
    Gpu(file="h100-pcie", name="H100 PCIe", data="h100_pcie", units=114, clock_ghz=None,
        l1_kib=256, l2_mib=25, l2_gb_s=None, lanes=None, cc="9.0",
        origins={
            "units": "work-items over work-group size in gpu-benches' stream results",
            "L1": "NVIDIA H100 architecture white paper",
            "L2": "effective: half of the 50 MB of NVIDIA's H100 white paper; gpu-benches' L2 "
            "bandwidth falls between 23.6 and 44 MB",
        }),
    Gpu(file="h200", name="H200", data="h200", units=132, clock_ghz=1.98, l1_kib=256, l2_mib=30,
        l2_gb_s=8400, lanes=(128, 64), cc="9.0",
        dispatch=(6.1e-10, "gpu-small-kernels, RRZE-HPC/gpu-benches@1038c5d: 844 and 1672 GB/s "
                  "with 32 and 64 work-items per work-group")),
    Gpu(file="gh200", name="GH200 480GB", data="gh200", units=132, clock_ghz=1.98, l1_kib=256,
        l2_mib=30, l2_gb_s=8400, lanes=(128, 64), cc="9.0"),
    Gpu(file="mi100", name="Instinct MI100", data="mi100", units=120, clock_ghz=1.2, l1_kib=16,
        l2_mib=8, l2_gb_s=2500, lanes=(64, 32), warp=64, line=64, l1_sector=64, items=2560,
        local_kib=64, origins={
            "units": "work-items over work-group size in gpu-benches' stream results; the "
            + TABLE + " has 110"}),
    Gpu(file="mi210", name="Instinct MI210", data="mi210", units=104, clock_ghz=1.7, l1_kib=16,
        l2_mib=6, l2_gb_s=None, lanes=(64, 64), warp=64, line=64, l1_sector=64, items=2048,
        registers=CDNA_REGISTERS, local_kib=64,
        origins={"L2": "effective; the vendor states 8 MiB; " + TABLE}),
    Gpu(file="mi300x", name="Instinct MI300X", data="mi300x", units=304, clock_ghz=2.1, l1_kib=32,
        l2_mib=4, l2_gb_s=13700, lanes=(64, 64), warp=64, l1_sector=128, l2_shared_by=38,
        items=2048, registers=CDNA_REGISTERS, local_kib=64),
    Gpu(file="mi300a", name="Instinct MI300A", data="mi300a", units=228, clock_ghz=2.1, l1_kib=32,
        l2_mib=4, l2_gb_s=10100, lanes=(64, 64), warp=64, l1_sector=128, l2_shared_by=38,
        items=2048, registers=CDNA_REGISTERS, local_kib=64),
    Gpu(file="rx-6900-xt", name="Radeon RX 6900 XT", data="rx6900xt", units=80, clock_ghz=2.56,
        l1_kib=16, l2_mib=4, l2_gb_s=None, lanes=(64, 4), l1_sector=128, items=1024, local_kib=64,
        origins={"L1": "AMD calls it L0; latency rises between 12 and 19 kB in gpu-benches' "
                 "results; the " + TABLE + " has 32 KiB for two compute units"}),
)  # fmt: skip
ROOFLINE = "gpu-roofline, te42kyfo/gpu-benches@{}"
# How arithmetic and memory overlap, as `gpu_microbenchmarks.py` fits it to measured rooflines.
OVERLAP_POWERS = {
    "a100": (2.4, ROOFLINE.format("e4e93a3")),
    "a100-80gb": (2.4, ROOFLINE.format("e4e93a3") + ", of the A100-SXM4-40GB"),
    "a40": (4.5, ROOFLINE.format("e4e93a3")),
    "l40": (6.3, ROOFLINE.format("e4e93a3")),
    "h200": (1.8, ROOFLINE.format("e4e93a3")),
    "h100-pcie": (1.8, ROOFLINE.format("e4e93a3") + ", of the H200, the same chip"),
    "gh200": (1.8, ROOFLINE.format("e4e93a3") + ", of the H200, the same chip"),
    "mi300x": (1.8, ROOFLINE.format("1038c5d")),
    "mi300a": (1.8, ROOFLINE.format("1038c5d") + ", of the MI300X, the same dies"),
}
# Levels beyond those of the table: name, size in KiB, compute units that share one.
MORE_CACHES = {
    "rx-6900-xt": (
        ("L1.5", 128, 10, "AMD calls it L1, one per shader array; RDNA white paper"),
        ("L3", 128 * KIB, 80, "Infinity Cache; AMD RX 6900 XT specifications"),
    ),
    "mi300x": (("L3", 256 * KIB, 304, "Infinity Cache; AMD CDNA 3 white paper"),),
    "mi300a": (("L3", 256 * KIB, 228, "Infinity Cache; AMD CDNA 3 white paper"),),
}
