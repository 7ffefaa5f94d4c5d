package kernels

// families is the kernel table. The order is that of the listing, not of
// preference: the strategy ranks the candidates of all of them.
var families = []Family{}
