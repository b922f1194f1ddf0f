"""Facts of a kernel read from LLVM IR: what a compiler makes of its source before it optimises."""
