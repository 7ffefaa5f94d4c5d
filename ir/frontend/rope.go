package frontend

import (
	"fmt"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// ropeParams are the rotary position embedding's hyperparameters. Scaling follows YaRN
// (Peng et al. 2023, arXiv 2309.00071); linear position interpolation is its case without
// extrapolation.
type ropeParams struct {
	kind       string // of the pairs that rotate
	dims       int    // rotated dims of a head
	base       float64
	scaling    string // "none", "linear" or "yarn"
	factor     float64
	ctxOrig    float64
	extFactor  float64
	attnFactor float64
	betaFast   float64
	betaSlow   float64
	logMul     float64
	latent     bool      // of latent attention: YaRN changes the scale of scores, too, see inScale
	level      bool      // YaRN with a multiplier leaves the magnitude as it is
	sections   []float64 // of multimodal RoPE, see ropeTable
	streams    streams   // how these choose
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
		// Files of OLMo 3 have the magnitude here, too, which follows from the factor.
		if given := r.float("rope.scaling.yarn_attn_factor", 1, 0, 1e6); p.extFactor == 0 {
			p.attnFactor *= given
		}
	}
	switch {
	case r.err != nil:
	case !slices.Contains([]string{"none", "linear", "yarn", "longrope"}, p.scaling):
		r.fail(ir.Unsupported("metadata %srope.scaling.type: %q is not supported", r.prefix, p.scaling))
	case p.base <= 1 || p.factor < 0 || p.ctxOrig <= 0:
		r.fail(fmt.Errorf("metadata %srope: base %g, scaling factor %g or original context %g out of range", r.prefix, p.base, p.factor, p.ctxOrig))
	}
	if p.factor == 0 || p.scaling == "none" {
		p.factor = 1
	}
	return p
}

// turn sets what pairs rotate. Multimodal RoPE turns those of neox, whatever the architecture has else.
func (p *ropeParams) turn(r *metadata, a *arch) {
	s := p.sections
	if p.kind = a.rope; a.streams == oneStream || len(s) < 2 || !(s[0] > 0 && s[1] > 0) {
		return
	}
	p.kind, p.streams = "neox", a.streams
	if len(s) != 4 || slices.ContainsFunc(s, func(x float64) bool { return x < 0 || x > 1<<16 }) {
		r.fail(fmt.Errorf("metadata %srope.dimension_sections: %g are not four numbers of pairs", r.prefix, s))
	}
}

// still reports whether a pair rotates by the fourth position of a token, which is 0 in all texts.
func (p ropeParams) still(pair int) bool {
	if p.streams == oneStream {
		return false
	}
	s := p.sections
	at := math.Mod(float64(pair), s[0]+s[1]+s[2]+s[3])
	if p.streams == inRuns {
		return at >= s[0]+s[1]+s[2]
	}
	return at >= 3*s[int(at)%3]
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
		if p.still(i) {
			interp, extrap = 0, 0
		}
		freqs = append(freqs, interp*(1-mix)+extrap*mix)
	}
	return freqs, p.magnitude()
}

// magnitude is the factor on cos and sin.
func (p ropeParams) magnitude() float64 {
	if p.scaling != "yarn" || p.extFactor == 0 || p.factor <= 1 || p.level && p.logMul != 0 {
		return p.attnFactor
	}
	return p.attnFactor * (0.1*math.Log(p.factor) + 1) / p.multiplied()
}

// multiplied is what YaRN with a multiplier divides the magnitude by. Files of models with latent attention keep a
// tenth of it.
func (p ropeParams) multiplied() float64 {
	if p.scaling != "yarn" || p.factor <= 1 {
		return 1
	}
	if p.latent {
		return p.logMul*math.Log(p.factor) + 1
	}
	return 0.1*p.logMul*math.Log(p.factor) + 1
}

// inScale is the factor on the scores of latent attention: only a part of its keys rotates, the magnitude is that of
// all.
func (p ropeParams) inScale() float64 {
	m := p.magnitude() * p.multiplied()
	return m * m
}

// layerTables are the tables that rotate a layer's heads.
type layerTables struct{ keys, queries *ir.Value }

// ropeTables declares the cos/sin tables of the model and returns those of each layer.
func (m *model) ropeTables() []layerTables {
	list := make([]layerTables, m.layers)
	if m.err != nil {
		return list
	}
	divisors, err := m.ropeDivisors()
	if err != nil {
		m.err = err
	}
	tables := map[string]*ir.Value{}
	declare := func(name string, freqs []float64, mscale float64, more ...ir.Attr) *ir.Value {
		if tables[name] == nil {
			tables[name] = m.ropeTable(name, freqs, mscale, more...)
		}
		return tables[name]
	}
	for i := range list {
		t := &list[i]
		switch {
		case m.row.ropeless != nil && m.row.ropeless(m.params, i):
			t.keys = declare("rope_none", make([]float64, min(8, m.attention[i].dim/2*2)/2), 1) // which turns nothing
		case m.attention[i].window > 0 && m.row.windows.rope != sameRope:
			freqs, mscale := m.ropeSWA.frequencies(nil)
			t.keys = declare("rope_swa", freqs, mscale)
		default:
			freqs, mscale := m.rope.frequencies(divisors)
			var more []ir.Attr
			if m.rope.sections != nil {
				more = []ir.Attr{{Name: "sections", Value: m.rope.sections}}
			}
			t.keys = declare("rope", freqs, mscale, more...)
			if t.queries = t.keys; m.heat.scale != 0 {
				t.queries = declare("rope_q", freqs, mscale, m.heat.attrs()...)
			}
		}
		if t.queries == nil {
			t.queries = t.keys
		}
	}
	return list
}

// ropeTable declares a table.
//
// Multimodal RoPE gives a token positions in time, height and width; its sections
// say which of them turns a pair. It turns the pairs of neox. A text token has one
// position in all three, so that the sections change nothing and the ops are those of
// plain RoPE; what they leave has a fourth, which is 0. They stay with the table for a
// model that is also given images.
func (m *model) ropeTable(name string, freqs []float64, mscale float64, more ...ir.Attr) *ir.Value {
	if m.err != nil {
		return nil
	}
	for _, x := range append(slices.Clone(freqs), mscale) {
		if !(math.Abs(x) <= math.MaxFloat32) {
			m.err = fmt.Errorf("metadata %s.rope: scaling gives the angle or factor %g", m.arch, x)
			return nil
		}
	}
	v := m.p.AddGlobal(name, ir.Table, ir.MakeType(ir.F32, ir.L, ir.Dim(2*len(freqs))))
	v.Attrs = append(ir.Attrs{{Name: "kind", Value: "rope"}, {Name: "freqs", Value: freqs}, {Name: "mscale", Value: mscale}}, more...)
	return v
}

const ropeFreqs = "rope_freqs.weight"

// longRope are the tensors of divisors for contexts up to the one of training, and for longer
// ones (Ding et al. 2024, arXiv 2402.13753).
var longRope = [2]string{"rope_factors_short.weight", "rope_factors_long.weight"}

// ropeDivisors returns what divides the angles, nil for nothing. The divisors of a model
// with long rope depend on the context that the plan is made for.
func (m *model) ropeDivisors() ([]float32, error) {
	name := ropeFreqs
	if _, ok := m.f.Tensor(name); !ok {
		name = longRope[0]
		if float64(m.p.Ctx) > m.rope.ctxOrig {
			name = longRope[1]
		}
	}
	t, ok := m.f.Tensor(name)
	if !ok {
		if m.rope.scaling == "longrope" {
			return nil, fmt.Errorf("tensor %q is missing", name)
		}
		return nil, nil
	}
	d, err := m.divisors(t)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	return d, nil
}

func (m *model) divisors(t *gguf.Tensor) ([]float32, error) {
	if t.Type != ir.F32 || t.Elements() != int64(m.rope.dims/2) {
		return nil, fmt.Errorf("want %d elements of f32, have %d of %s", m.rope.dims/2, t.Elements(), t.Type)
	}
	d := make([]float32, t.Elements())
	if !m.f.Holds(t) { // of a model of which there is the header, angles make no difference to a plan's shape
		for i := range d {
			d[i] = 1
		}
		return d, nil
	}
	if err := mapped.Read(func() error { return gguf.Dequantize(d, m.f.Data(t), t.Type) }); err != nil {
		return nil, err
	}
	for i, x := range d {
		if !(x > 0) {
			return nil, fmt.Errorf("element %d is %g", i, x)
		}
	}
	return d, nil
}
