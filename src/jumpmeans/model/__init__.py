"""What is fitted: the process, its parameters, what may happen, the objective."""
