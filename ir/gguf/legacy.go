package gguf

import "strings"

// run is some rows of a tensor that follow each other.
type run struct{ first, rows int64 }

// splitLegacy shows files of early converters as today's would be. Those of
// qwen3next have one matrix, ssm_in, for what are now two: its rows are grouped by key
// head, and a group has those of q, k, v and z. A matrix that is not of that
// shape stays what it is.
func (f *File) splitLegacy() {
	const suffix = "ssm_in.weight"
	if arch, _, _ := f.String("general.architecture"); arch != "qwen3next" {
		return
	}
	heads, _, err1 := f.Uint("qwen3next.ssm.group_count")
	values, _, err2 := f.Uint("qwen3next.ssm.time_step_rank")
	dim, _, err3 := f.Uint("qwen3next.ssm.state_size")
	const limit = 1 << 12
	if err1 != nil || err2 != nil || err3 != nil || heads == 0 || heads > limit || values > limit || values%heads != 0 || dim == 0 || dim > limit {
		return
	}
	var tensors []Tensor
	for _, t := range f.Tensors {
		blk, legacy := strings.CutSuffix(t.Name, suffix)
		_, taken1 := f.index[blk+"attn_qkv.weight"]
		_, taken2 := f.index[blk+"attn_gate.weight"]
		k, v, d := int64(heads), int64(values/heads), int64(dim)
		if !legacy || taken1 || taken2 || len(t.Shape) != 2 || t.Shape[1] != k*(2+2*v)*d {
			tensors = append(tensors, t)
			continue
		}
		group := (2 + 2*v) * d
		// every takes n rows of each group, from its row first on.
		every := func(first, n int64) (runs []run) {
			for h := range k {
				runs = append(runs, run{h*group + first, n})
			}
			return runs
		}
		qkv := append(append(every(0, d), every(d, d)...), every(2*d, v*d)...)
		tensors = append(tensors, t.gather(blk+"attn_qkv.weight", qkv), t.gather(blk+"attn_gate.weight", every((2+v)*d, v*d)))
	}
	f.replace(tensors)
}

// replace makes these the tensors of f.
func (f *File) replace(tensors []Tensor) {
	f.Tensors = tensors
	f.index = map[string]int{}
	for i, t := range tensors {
		f.index[t.Name] = i
	}
}

// gather returns the tensor of these rows of t, a matrix.
func (t Tensor) gather(name string, runs []run) Tensor {
	rows := int64(0)
	for _, r := range runs {
		rows += r.rows
	}
	t.Size = t.Size / t.Shape[1] * rows
	t.Name, t.Shape, t.runs = name, []int64{t.Shape[0], rows}, runs
	return t
}

// gathered copies the rows of t out of all data of its shard.
func (t *Tensor) gathered(shard []byte) []byte {
	row := t.Size / t.Shape[1]
	data := make([]byte, 0, t.Size)
	for _, r := range t.runs {
		data = append(data, shard[t.Offset+r.first*row:][:r.rows*row]...)
	}
	return data
}
