"""How an epoch goes over a graph: whole, in batches, or shared by several processes."""
