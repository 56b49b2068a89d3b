"""Starts recording with a program: the command, the start file, the checks of ``marey doctor``."""
