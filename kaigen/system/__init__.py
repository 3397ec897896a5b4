"""What a run needs of the machine: a cache folder, processes, a report of progress."""
