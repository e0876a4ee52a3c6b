import sys

from cpubench.cli import main

sys.exit(main())
