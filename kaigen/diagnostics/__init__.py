"""Problems in what a person wrote: their type, their codes, and the reports of them."""
