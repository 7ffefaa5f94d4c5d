package main

import "fmt"

// peerKernel is a row of the table of the peer's kernels: a projection of a row of x or
// several, as it runs them on RDNA, with subgroups of 64 that are workgroups.
type peerKernel struct {
	weights string
	x       string // f32 or q8_1
	module  string // digest: llama.cpp 0.7.0, Debian's build 11669
	// rows are those of the weights that a workgroup computes, by columns of x.
	rows map[int]int
	// takes says for which columns the peer takes the kernel.
	takes []int
}

// Specialization constants of the peer's kernels.
const (
	peerLanes, peerRows, peerColumns = 0, 1, 2
	peerWave                         = 64
)

var (
	two       = map[int]int{1: 2, 2: 2, 4: 2, 8: 2}
	one       = map[int]int{1: 1, 2: 1, 4: 1, 8: 1}
	oneToFour = map[int]int{1: 1, 2: 1, 4: 1, 8: 4}
	all       = []int{1, 2, 4, 8}
)

var peerKernels = []peerKernel{
	{"q4_k", "f32", "74173c48227587a2", two, nil},
	{"q4_k", "q8_1", "6ba84f2a3f014198", oneToFour, all},
	{"q5_k", "f32", "1d8ab32fc0f3869f", two, nil},
	{"q5_k", "q8_1", "0b41af495778337d", oneToFour, all},
	{"q6_k", "f32", "f9be5d1dab2d463b", two, all},
	{"q8_0", "f32", "ec55fce94c15dd15", one, []int{1}},
	{"q8_0", "q8_1", "b29293969b27f0ea", oneToFour, []int{2, 4, 8}},
}

// rowLength and rowCount are the matrix that is multiplied.
const rowLength, rowCount = 4096, 4096

// program is one projection of each format, for each number of columns, as passes of
// stage fuse leave it.
func program(formats []string) string {
	text := "zir 1\nstage fuse\nmodel arch=\"\" name=\"\" path=\"\" source=\"\" target=\"\" ctx=512 slots=1 layers=1\n\n" +
		fmt.Sprintf("step @n : i32[1]\nstep @x : f32[T, %d]\n", rowLength)
	for _, f := range formats {
		text += fmt.Sprintf("weight @%s : %s[%d, %d]\n", f, f, rowCount, rowLength)
	}
	for _, columns := range all {
		text += fmt.Sprintf("\nfunc \"decode/%d\" rows=%d sequences=many run=%d class=exact {\n", columns, columns, columns)
		for i, f := range formats {
			text += fmt.Sprintf("  group %q stage=0 waits=0 {\n    %%%d = linear @x, @%s : io f32[T, %d]\n  }\n", f, i, f, rowCount)
		}
		text += "}\n"
	}
	return text
}
