package frontend

import (
	"fmt"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// ropeParams are the rotary position embedding's hyperparameters. Scaling is
// that of YaRN (Peng et al. 2023, arXiv 2309.00071), of which linear position
// interpolation is the case without extrapolation.
type ropeParams struct {
	dims       int // rotated dims of a head
	base       float64
	scaling    string // "none", "linear" or "yarn"
	factor     float64
	ctxOrig    float64
	extFactor  float64
	attnFactor float64
	betaFast   float64
	betaSlow   float64
	logMul     float64
	sections   []float64 // of multimodal RoPE, see ropeTable
}

func readRope(r *metadata, headDim, ctxTrain int) ropeParams {
	p := ropeParams{
		dims:       r.int("rope.dimension_count", headDim),
		base:       r.float("rope.freq_base", 10000, 1, 1e18),
		scaling:    r.str("rope.scaling.type", "linear"),
		factor:     r.float("rope.scaling.factor", r.float("rope.scale_linear", 1, 0, 1e9), 0, 1e9),
		ctxOrig:    r.float("rope.scaling.original_context_length", float64(ctxTrain), 0, 1<<40),
		attnFactor: r.float("rope.scaling.attn_factor", 1, 0, 1e6),
		betaFast:   r.float("rope.scaling.yarn_beta_fast", 32, 0, 1e9),
		betaSlow:   r.float("rope.scaling.yarn_beta_slow", 1, 0, 1e9),
		logMul:     r.float("rope.scaling.yarn_log_multiplier", 0, -1e6, 1e6),
		sections:   r.floats("rope.dimension_sections"),
	}
	if p.scaling == "yarn" {
		p.extFactor = r.float("rope.scaling.yarn_ext_factor", 1, -1e6, 1e6)
		p.attnFactor *= r.float("rope.scaling.yarn_attn_factor", 1, 0, 1e6)
	}
	switch {
	case r.err != nil:
	case p.scaling != "none" && p.scaling != "linear" && p.scaling != "yarn":
		r.fail(ir.Unsupported("metadata %srope.scaling.type: %q is not supported", r.prefix, p.scaling))
	case p.dims%2 != 0 || p.dims > headDim:
		r.fail(fmt.Errorf("metadata %srope.dimension_count: %d does not fit heads of %d", r.prefix, p.dims, headDim))
	case p.base <= 1 || p.factor < 0 || p.ctxOrig <= 0:
		r.fail(fmt.Errorf("metadata %srope: base %g, scaling factor %g or original context %g out of range", r.prefix, p.base, p.factor, p.ctxOrig))
	}
	if p.factor == 0 || p.scaling == "none" {
		p.factor = 1
	}
	return p
}

// readRopeSWA reads how layers rotate that attend to a window.
func readRopeSWA(r *metadata, c *params, row windowRope) ropeParams {
	i := slices.IndexFunc(c.attention, func(h headParams) bool { return h.window > 0 })
	if row == sameRope || i < 0 {
		return c.rope
	}
	p := ropeParams{dims: r.int("rope.dimension_count_swa", min(c.rope.dims, c.attention[i].dim)), factor: 1, ctxOrig: c.rope.ctxOrig, attnFactor: 1,
		betaFast: c.rope.betaFast, betaSlow: c.rope.betaSlow}
	base := 10000.0
	if row == sameBase {
		base = c.rope.base
	}
	p.base = r.float("rope.freq_base_swa", base, 1, 1e18)
	if r.err == nil && (p.dims%2 != 0 || p.dims > c.attention[i].dim || p.base <= 1) {
		r.fail(fmt.Errorf("metadata %srope.dimension_count_swa or rope.freq_base_swa: %d of %d dims or base %g out of range", r.prefix, p.dims, c.attention[i].dim, p.base))
	}
	return p
}

// frequencies returns the angle per position of each pair, and the factor on cos
// and sin. divisors is the content of rope_freqs.weight, or nil.
func (p ropeParams) frequencies(divisors []float32) (freqs []float64, mscale float64) {
	corr := func(beta float64) float64 {
		return float64(p.dims) * math.Log(p.ctxOrig/(beta*2*math.Pi)) / (2 * math.Log(p.base))
	}
	low := math.Max(0, math.Floor(corr(p.betaFast)))
	high := math.Min(float64(p.dims-1), math.Ceil(corr(p.betaSlow)))
	for i := range p.dims / 2 {
		extrap := math.Pow(p.base, -2*float64(i)/float64(p.dims))
		if divisors != nil {
			extrap /= float64(divisors[i])
		}
		interp := extrap / p.factor
		ramp := 1 - math.Min(1, math.Max(0, (float64(i)-low)/math.Max(0.001, high-low)))
		mix := ramp * p.extFactor
		freqs = append(freqs, interp*(1-mix)+extrap*mix)
	}
	mscale = p.attnFactor
	if p.scaling == "yarn" && p.factor > 1 {
		logf := math.Log(p.factor)
		mscale *= (0.1*logf + 1)
		if p.logMul != 0 {
			mscale /= 0.1*p.logMul*logf + 1
		}
	}
	return freqs, mscale
}

// ropeTables declares the cos/sin tables of the model and returns that of each layer.
func (m *model) ropeTables() []*ir.Value {
	if m.err != nil {
		return make([]*ir.Value, m.layers)
	}
	divisors, err := m.ropeDivisors()
	if err != nil {
		m.err = fmt.Errorf("tensor %q: %w", ropeFreqs, err)
	}
	tables, list := map[string]*ir.Value{}, []*ir.Value{}
	for i := range m.layers {
		name, p, d := "rope", m.rope, divisors
		if m.attention[i].window > 0 && m.row.windows.rope != sameRope {
			name, p, d = "rope_swa", m.ropeSWA, nil
		}
		if m.row.ropeless != nil && m.row.ropeless(m.params, i) {
			name, p, d = "rope_none", ropeParams{dims: min(4, p.dims), base: 2, factor: math.Inf(1), ctxOrig: 1, attnFactor: 1}, nil
		}
		if tables[name] == nil {
			tables[name] = m.ropeTable(name, p, d)
		}
		list = append(list, tables[name])
	}
	return list
}

// ropeTable declares a table.
//
// Multimodal RoPE gives a token positions in time, height and width; its sections
// say which of them turns a pair. Interleaved, it turns the pairs of neox. A text
// token has one position in all of them, so that the sections change nothing and
// the ops are those of plain RoPE. They stay with the table for a model that is
// also given images.
func (m *model) ropeTable(name string, p ropeParams, divisors []float32) *ir.Value {
	if m.err != nil {
		return nil
	}
	freqs, mscale := p.frequencies(divisors)
	for _, x := range append(freqs, mscale) {
		if !(math.Abs(x) <= math.MaxFloat32) {
			m.err = fmt.Errorf("metadata %s.rope: scaling gives the angle or factor %g", m.arch, x)
			return nil
		}
	}
	v := m.p.AddGlobal(name, ir.Table, ir.MakeType(ir.F32, ir.L, ir.Dim(p.dims)))
	v.Attrs = ir.Attrs{{Name: "kind", Value: "rope"}, {Name: "freqs", Value: freqs}, {Name: "mscale", Value: mscale}}
	if p.sections != nil {
		v.Attrs = append(v.Attrs, ir.Attr{Name: "sections", Value: p.sections})
	}
	return v
}

const ropeFreqs = "rope_freqs.weight"

func (m *model) ropeDivisors() ([]float32, error) {
	t, ok := m.f.Tensor(ropeFreqs)
	if !ok {
		return nil, nil
	}
	if t.Type != ir.F32 || t.Elements() != int64(m.rope.dims/2) {
		return nil, fmt.Errorf("want %d elements of f32, have %d of %s", m.rope.dims/2, t.Elements(), t.Type)
	}
	d := make([]float32, t.Elements())
	if err := gguf.Dequantize(d, m.f.Data(t), t.Type); err != nil {
		return nil, err
	}
	for i, x := range d {
		if !(x > 0) {
			return nil, fmt.Errorf("element %d is %g", i, x)
		}
	}
	return d, nil
}
