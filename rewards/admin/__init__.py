"""The admin of the machine half: its rows, the opening page and what the buttons do."""

from rewards.admin import rows
