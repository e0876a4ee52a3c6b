import sys

from cpubench.entry import main

sys.exit(main())
