"""What is measured: each study has its kinds of scenario, its systems and its report."""
