package lane

import (
	"maps"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// LogDecay returns softplus(a + dt) * rate.
func LogDecay(b *kernel.Builder, a, dt, rate kernel.Value) kernel.Value {
	return b.Mul(softplus(b, b.Add(a, dt)), rate)
}

// softplus returns ln(1 + exp(x)) = max(x, 0) + ln(1 + e) with e = exp(-|x|), the
// logarithm as 2 artanh(s), s = e/(2+e) <= 1/3, by its series: a device's Log has
// no relative precision near 1, and what is lost here would be lost in each token
// that a state remembers.
func softplus(b *kernel.Builder, x kernel.Value) kernel.Value {
	e := b.Exp(b.Neg(b.Abs(x)))
	s := b.Div(e, b.Add(e, 2.0))
	square := b.Mul(s, s)
	series := b.F32(1.0 / 15)
	for _, n := range []float32{13, 11, 9, 7, 5, 3} {
		series = b.FMA(series, square, 1/n)
	}
	series = b.FMA(series, square, 1.0)
	return b.Add(b.Max(x, 0.0), b.Mul(s, series, 2.0))
}

// Sigmoid returns 1 / (1 + exp(-x)).
func Sigmoid(b *kernel.Builder, x kernel.Value) kernel.Value { return Logistic(b, b.F32(1), x) }

// GLU activates a gate and returns what multiplies with it: op glu.
func GLU(b *kernel.Builder, act string, gate kernel.Value) func(up kernel.Value) kernel.Value {
	if act == "swiglu_oai" {
		g := b.Min(gate, 7.0)
		g = Logistic(b, g, b.Mul(g, float32(1.702)))
		return func(up kernel.Value) kernel.Value { return b.Mul(g, b.Add(b.Clamp(up, -7.0, 7.0), 1.0)) }
	}
	g := Activations[act](b, gate)
	return func(up kernel.Value) kernel.Value { return b.Mul(g, up) }
}

// Relu2 returns max(x, 0)^2: op relu2.
func Relu2(b *kernel.Builder, x kernel.Value) kernel.Value {
	v := b.Max(x, 0.0)
	return b.Mul(v, v)
}

// Tanh returns tanh(x) = 1 - 2/(1 + exp(2x)), and uses the series for small x, where the
// difference would cancel.
func Tanh(b *kernel.Builder, x kernel.Value) kernel.Value {
	square := b.Mul(x, x)
	series := b.F32(0)
	for _, c := range []float32{62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3, 1} {
		series = b.FMA(series, square, c)
	}
	far := b.Sub(1.0, b.Div(2.0, b.Add(b.Exp(b.Clamp(b.Mul(x, 2.0), -80.0, 80.0)), 1.0)))
	return b.Select(b.Lt(b.Abs(x), 0.25), b.Mul(x, series), far)
}

// Activations are the activations of op glu that depend on the gate alone.
var Activations = map[string]func(b *kernel.Builder, x kernel.Value) kernel.Value{
	"silu": func(b *kernel.Builder, x kernel.Value) kernel.Value { return Logistic(b, x, x) },
	// 0.5*(1 + tanh(u)) is 1/(1 + exp(-2u)), here u = sqrt(2/pi)*(x + 0.044715*x^3).
	"gelu": func(b *kernel.Builder, x kernel.Value) kernel.Value {
		cubic := b.FMA(b.Mul(x, x, x), float32(0.044715), x)
		return Logistic(b, x, b.Mul(cubic, float32(2*0.7978845608028654)))
	},
}

// GLUs are the activations of GLU, in the order in which kernels number them.
var GLUs = append(slices.Sorted(maps.Keys(Activations)), "swiglu_oai")

// Logistic returns x / (1 + exp(-u)). The exponent is bounded, so that the divisor
// stays in the range in which Vulkan promises a precise division.
func Logistic(b *kernel.Builder, x, u kernel.Value) kernel.Value {
	return b.Div(x, b.Add(b.Exp(b.Min(b.Neg(u), 80.0)), 1.0))
}
