"""How much GPU memory a model takes, and on how many GPUs of which nodes it runs: arithmetic without I/O.

`plan.plan` is the one function that others call; `facts` has what goes in, `result` what comes out. `kaito` is KAITO's
own estimate, for output that follows KAITO.
"""
