package plans

import (
	"cmp"
	"regexp"
	"slices"
	"sort"

	"github.com/zincc-dev/zincc/ir"
)

// Seconds is the whole time.
func (t Times) Seconds() float64 {
	return max(float64(t.Bytes), float64(t.Operations)) + float64(t.Stage)
}

// Bound names the part that takes the most time: "bytes", "operations" or "stage", or
// "none" if nothing is predicted.
func (t Times) Bound() string {
	switch largest := max(t.Bytes, t.Operations, t.Stage); largest {
	case 0:
		return "none"
	case t.Bytes:
		return "bytes"
	case t.Operations:
		return "operations"
	}
	return "stage"
}

// At is the cost behind depth cached positions.
func (c Cost) At(depth int) Cost {
	more := c
	more.ReadBytes += c.BytesPerPos * int64(depth)
	more.FLOPs += c.FLOPsPerPos * int64(depth)
	more.Predicted.Bytes *= ratio(more.ReadBytes+more.WriteBytes, c.ReadBytes+c.WriteBytes)
	more.Predicted.Operations *= ratio(more.FLOPs, c.FLOPs)
	return more
}

func ratio(a, b int64) float32 {
	if b == 0 {
		return 1
	}
	return float32(float64(a) / float64(b))
}

// Prediction is the predicted time of dispatches in seconds, by part: each
// dispatch counts with the longer of its bytes and operations, and with its stage.
type Prediction struct {
	Bytes, Operations, Stages float64
}

// Seconds is the whole time.
func (p Prediction) Seconds() float64 { return p.Bytes + p.Operations + p.Stages }

// Bound names the part that takes the most time, as Times.Bound does.
func (p Prediction) Bound() string {
	return Times{float32(p.Bytes), float32(p.Operations), float32(p.Stages)}.Bound()
}

func (p *Prediction) add(t Times) {
	if t.Bytes >= t.Operations {
		p.Bytes += float64(t.Bytes)
	} else {
		p.Operations += float64(t.Operations)
	}
	p.Stages += float64(t.Stage)
}

// Predict adds up a step of the entry with full rows behind depth positions.
func (e *Entry) Predict(depth int) Prediction {
	var p Prediction
	for i := range e.Dispatches {
		p.add(e.Dispatches[i].Cost.At(depth).Predicted)
	}
	return p
}

// Work adds up what a step of the entry must read, write and compute at least.
func (e *Entry) Work(depth int) (read, write, flops int64) {
	for i := range e.Dispatches {
		c := e.Dispatches[i].Cost.At(depth)
		read, write, flops = read+c.ReadBytes, write+c.WriteBytes, flops+c.FLOPs
	}
	return read, write, flops
}

// Stages is the number of the entry's stages.
func (e *Entry) Stages() int {
	stages := map[int]bool{}
	for i := range e.Dispatches {
		stages[e.Dispatches[i].Stage] = true
	}
	return len(stages)
}

// SitePrediction is the predicted time of the dispatches of one call site, over all layers.
type SitePrediction struct {
	Site       string // folded
	Dispatches int
	Prediction
}

// PredictSites is Predict by call site, slowest first.
func (e *Entry) PredictSites(depth int) []SitePrediction {
	var sites []SitePrediction
	at := map[string]int{}
	for i := range e.Dispatches {
		d := &e.Dispatches[i]
		name := FoldSite(d.Site)
		j, ok := at[name]
		if !ok {
			j = len(sites)
			at[name] = j
			sites = append(sites, SitePrediction{Site: name})
		}
		sites[j].Dispatches++
		sites[j].add(d.Cost.At(depth).Predicted)
	}
	slices.SortStableFunc(sites, func(a, b SitePrediction) int { return cmp.Compare(b.Seconds(), a.Seconds()) })
	return sites
}

// layerNumber and repeat are the parts of a site's name that tell layers apart.
var (
	layerNumber = regexp.MustCompile(`^blk\.([0-9]+)\.`)
	repeat      = regexp.MustCompile(`\.[0-9]+$`)
)

// FoldSite returns the name that a call site or tensor shares with its like in other
// layers: "blk.*.attn_q" for "blk.3.attn_q", "glu" for "glu.2".
func FoldSite(site string) string {
	if layerNumber.MatchString(site) {
		return layerNumber.ReplaceAllString(site, "blk.*.")
	}
	return repeat.ReplaceAllString(site, "")
}

// cacheRow is what another position of a sequence takes in the KV caches, in bytes. It takes nothing in those that are
// rings.
func (p *Plan) cacheRow() int64 {
	sum := int64(0)
	for _, r := range p.Memory.KV {
		if k := r.Kept.Kind; k == ir.KeepPositions.String() || k == ir.KeepPages.String() {
			sum += r.Kept.RowBytes
		}
	}
	return sum
}

// LargestCtx is the largest context with which the plan needs no more than memory
// bytes on the device, 0 if there is none.
func (p *Plan) LargestCtx(memory int64) int {
	rest, table := memory-p.MemoryBytes(), int64(0) // a position of all tables that have some for each
	for _, r := range p.Memory.Tables {
		if g := p.Program.Global(r.Name); g != nil && slices.Contains(g.Type.Shape, ir.L) {
			table += r.Bytes / int64(p.Header.Ctx)
			rest += r.Bytes
		}
	}
	rest += SumBytes(p.Memory.KV)
	return sort.Search(ir.MaxCtx, func(n int) bool { // n+1 is too large
		need := table * int64(n+1)
		for _, r := range p.Memory.KV {
			k := r.Kept
			rows := k.Sequences * ir.RingPositions(k.Window, p.Header.MaxRows, n+1)
			if k.Page > 0 {
				rows = k.pagesOf(k.pagesAt(n+1)+1, n+1) * k.Page
			}
			need += k.RowBytes * int64(rows)
		}
		return need > rest
	})
}
