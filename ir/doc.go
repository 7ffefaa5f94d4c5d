// Package ir is the op IR of zincc: a model's step function as typed SSA values,
// the table of ops that produce them, a text form that prints and parses back to
// the same bytes, and a verifier.
//
// # Shapes
//
// Shapes are row-major, outermost dimension first. A weight matrix that GGUF
// lists as {n_in, n_out} has the shape [n_out, n_in] here. Two dimensions are
// symbols: T, the rows of one step, and L, the length of a sequence slot's KV
// cache. Both are bounded: T by Func.Rows, L by Program.Ctx.
//
// # Structure
//
// A [Program] owns globals (weights, KV caches, the step block) and functions. A
// [Func] is a list of groups; a [Group] is a list of ops that one dispatch
// computes. After import every group holds one op and prints as that op alone;
// fusing merges groups, later stages annotate them.
package ir
