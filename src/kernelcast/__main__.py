"""``python -m kernelcast`` is the command ``kernelcast``."""

from kernelcast.cli import main

if __name__ == "__main__":
    main()
