"""One file a foreign library whose signature differs from the kernel's: thin, imported when asked.

The library is imported at the top of its file, never inside the function: that would be timed.
"""
