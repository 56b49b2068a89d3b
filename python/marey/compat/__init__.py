"""Names that exist only because PyTorch has them; ``marey.profiler`` exports them."""
