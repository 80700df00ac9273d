"""`python -m rewardloop`, the same as the command `rewardloop`."""

import sys

from rewardloop.command_line import main

sys.exit(main())
