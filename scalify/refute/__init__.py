"""Values on which two programs differ: searched, made certain, written down and run again.

In: two graphs, how the baseline's inputs lie on the candidate's ranks, and a verdict that is Unknown. Out:
Refuted with a witness, or Unknown with what was found on the way. To find no such values proves nothing.
"""
