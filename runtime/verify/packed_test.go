package verify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/step"
)

// The rows of the step that packTest packs.
const packDead, packLast = 18, 20

// packTest is a group that packs random rows, with what the oracle makes of it.
type packTest struct {
	*dispatch
	t      *testing.T
	v      *ir.Value
	packed ir.Packed
	want   []int32
}

func newPackTest(t *testing.T, body string) *packTest {
	t.Helper()
	p, err := ir.Parse(ir.Print(&ir.Program{Stage: ir.Fuse, Ctx: 8, Slots: 1}) + `
weight @gain : f32[512]
step @n : i32[1]
step @x : f32[T, 512]
func "f" rows=32 sequences=many run=32 class=prompt part=4 {
group "packs" stage=0 waits=0 {
` + body + `
}
}
`)
	if err != nil {
		t.Fatal(err)
	}
	f := p.Funcs[0]
	random := rand.New(rand.NewPCG(1, 2))
	floats := func(x []float32) []float32 {
		for i := range x {
			x[i] = float32(random.NormFloat64())
		}
		return x
	}
	m, err := oracle.New(t.Context(), p, weights{"gain": oracle.Encode(nil, ir.F32, floats(make([]float32, 512)))}, oracle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Ints(p.Global("n"))[0] = packLast + 1
	x := floats(m.Floats(p.Global("x")))
	clear(x[512:768]) // a block of zeros
	rows := make([]step.Row, packLast+1)
	rows[packDead].Slot = ir.NoSlot
	d := &dispatch{verifier: &verifier{machine: m, plan: &plans.Plan{Program: p}}, step: trial{entry: &plans.Entry{Part: 4}, rows: rows}, fn: f, group: f.Groups[0]}
	c := &packTest{dispatch: d, t: t, v: f.Ops()[len(f.Ops())-1].Result}
	if c.packed, err = ir.PackedOf(c.v.Def); err != nil {
		t.Fatal(err)
	}
	if err := m.RunGroupWith(f, d.group, func(op *ir.Op) error {
		d.noteProduct(op)
		return d.notePacked(t.Context(), op)
	}); err != nil {
		t.Fatal(err)
	}
	c.want = m.Ints(c.v)
	return c
}

// weights are those of a program.
type weights map[string][]byte

func (w weights) Weight(name string) ([]byte, error) { return w[name], nil }

// compare returns what is wrong with words.
func (c *packTest) compare(words []int32) string {
	d := *c.dispatch
	d.result, d.worst = Result{}, 0
	raw := make([]float32, len(words))
	for i, w := range words {
		raw[i] = math.Float32frombits(uint32(w))
	}
	if err := d.comparePacked(c.v, oracle.Encode(nil, ir.I32, raw)); err != nil {
		c.t.Fatal(err)
	}
	if d.result.Difference == nil {
		return ""
	}
	return d.result.Difference.Problem
}

// altered returns words for which the device has rounded a block otherwise: with so much more for an element, and for
// the scale, as a share of it.
func (c *packTest) altered(row, block, e int, more, scale float32) []int32 {
	words := slices.Clone(c.want)
	for v := range ir.PackCodes {
		for q := range 4 {
			pair, at := c.packed.Lanes[0].Elements(v, q), c.packed.Vector(0, row, block, v)+q
			i := slices.Index(pair[:], e)
			if i < 0 {
				continue
			}
			if c.packed.Lanes[0].Odd && v/4%2 == 1 {
				more /= 16
			}
			h := uint32(words[at]) >> (16 * i)
			code := gguf.F32ToF16(gguf.F16ToF32(uint16(h)) + more)
			words[at] += int32((uint32(code) - h&0xffff) << (16 * i))
		}
	}
	at := c.packed.Scales(0, row, block)[0]
	words[at] = int32(math.Float32bits(math.Float32frombits(uint32(words[at])) * (1 + scale)))
	return oracle.Repack12(c.packed, words, packLast+1)
}

const packing12 = "{rows=32, columns=16, lanes=\"now a-h\"} : io i32[8, 2368]"

// TestComparePacked: of rows that op pack12 has packed, each word counts, those behind the step's last row, too; but
// not those of dead rows. Codes that are near a tie may be on either side.
func TestComparePacked(t *testing.T) {
	c := newPackTest(t, "%0 = pack12 @x, @gain "+packing12)
	if problem := c.compare(c.want); problem != "" {
		t.Errorf("as it is: %q", problem)
	}
	for _, w := range []struct {
		name string
		at   int
		word int32
		want string
	}{
		{"a code of the second layout", c.packed.Vector(1, 3, 0, 7), 1, "a wrong integer"},
		{"a code that is none", c.packed.Vector(0, 3, 0, 7), 1, "off by more than tolerated"},
		{"a total", c.packed.Vector(0, 4, 1, 34), 1, "a wrong integer"},
		{"a total of the second layout", c.packed.Vector(1, 4, 1, 33) + 2, 1, "a wrong integer"},
		{"one that is not there", c.packed.Vector(0, 4, 1, 35) + 2, 1, "a wrong integer"},
		{"the last row's scale", c.packed.Scales(0, packLast, 0)[3], 1, "a wrong integer"},
		{"what is read as its scale", c.packed.Scales(0, packLast, 0)[0], 1, "off by more than tolerated"},
		{"the scale of zeros", c.packed.Scales(0, 1, 0)[0], 1, "off by more than tolerated"},
		{"one of zeros", c.packed.Vector(0, 1, 0, 4), 1, "off by more than tolerated"},
		{"-0", c.packed.Vector(0, 1, 0, 4), 0x8000, "a wrong integer"},
		{"a code that is not there", c.packed.Vector(0, 5, 0, 9), poison, "not written"},
		{"a scale that is not there", c.packed.Scales(0, 5, 0)[0], poison, "not written"},
		{"behind the last row", c.packed.Vector(1, packLast+1, 0, 35) + 3, 1, "a wrong integer"},
		{"behind all rows", c.packed.Scales(1, 31, 0)[0], poison, "not written"},
		{"a dead row", c.packed.Vector(0, packDead, 0, 35), poison, ""},
		{"a dead row's code", c.packed.Vector(0, packDead, 1, 3), poison, ""},
		{"a dead row's scale", c.packed.Scales(0, packDead, 0)[0], poison, ""},
	} {
		words := slices.Clone(c.want)
		words[w.at] = w.word
		if problem := c.compare(words); problem != w.want {
			t.Errorf("%s: %q, want %q", w.name, problem, w.want)
		}
	}
	if rowOf(&ir.Value{Type: c.v.Type, Def: &ir.Op{Kind: c.v.Def.Kind, Attrs: c.v.Def.Attrs, Args: []*ir.Value{{Type: ir.MakeType(ir.F32, 32, 256)}}}}, 4*2368) != nil {
		t.Error("rows that are not of the step are taken for its rows")
	}
}

// TestComparePackedRounding: what a device may round otherwise, and what it may not, if all that follows is right.
func TestComparePackedRounding(t *testing.T) {
	own, made := newPackTest(t, "%0 = pack12 @x, @gain "+packing12), newPackTest(t, "%0 = add @x, @x : f32[T, 512]\n%1 = pack12 %0, @gain "+packing12)
	for _, c := range []struct {
		name        string
		of          *packTest
		tie         float64 // how far from one what the code stands for is made
		more, scale float32
		want        string
	}{
		{"a code", own, 0.2, 1, 0, "off by more than tolerated"},
		{"two", own, 0.001, 2, 0, "off by more than tolerated"},
		{"near a tie", own, 0.002, 1, 0, "off by more than tolerated"},
		{"at a tie", own, 0.0005, 1, 0, ""},
		{"the scale's last places", own, 0.1, 0, 0x1p-22, ""},
		{"the scale", own, 0.1, 0, 0x1p-20, "off by more than tolerated"},
		{"near a tie of what is made", made, 0.002, 1, 0, ""},
		{"a code of what is made", made, 0.2, 1, 0, "off by more than tolerated"},
	} {
		const row, block, e = 7, 1, 37
		x := c.of.packs[c.of.v].x[(row*2+block)*256:][:256]
		_, scale := oracle.Block12(c.of.packed, c.of.want, row, block)
		before := x[e]
		n, _ := oracle.Block12(c.of.packed, c.of.want, row, block)
		x[e] = float32((float64(n[e]) + 0.5 - c.tie) * float64(scale)) // still n
		if problem := c.of.compare(c.of.altered(row, block, e, c.more, c.scale)); problem != c.want {
			t.Errorf("%s: %q, want %q", c.name, problem, c.want)
		}
		x[e] = before
	}
}
