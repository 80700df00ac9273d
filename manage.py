#!/usr/bin/env python
"""Django's command line for Rewardloop."""

from annotator.launch.manage import main

if __name__ == "__main__":
    main()
