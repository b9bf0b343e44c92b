"""The studies: each has its kinds of scenario, its systems and its report."""
