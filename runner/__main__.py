"""`python -m runner ARGS` from the root is `klab run ARGS`.

Absolute on purpose: started by its bare name, a relative import would load the house a second time
as `runner`, with a second set of types.
"""

import sys

from kernel_lab.runner.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "run")
    sys.exit(main())
