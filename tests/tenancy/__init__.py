"""Objects that the specs of a tenant may and may not have.

`rows` has a module for each policy, as `kaigen.tenancy.rows`, with what is denied next to what is allowed.
"""
