"""Sizing: how much GPU memory a model needs, and on how many GPUs and nodes it runs. Arithmetic without I/O.

`plan.plan` is the one function that others call; `facts` has what goes in, `result` what comes out. `kaito` is KAITO's
own estimate, for output that follows KAITO.
"""
