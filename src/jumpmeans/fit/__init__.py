"""How it is fitted: start, descent, changes of the number of states, closing steps."""
