package sample

import "math"

// expTable holds 2^(i/128).
var expTable = func() (t [128]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 128)
	}
	return t
}()

// exp is e^x for x <= 0, to 1 in 10^11, and 0 below e^-700: 2^(k/128) from a table and the exponent,
// times the series of what is left, at most ln(2)/256.
func exp(x float64) float64 {
	if !(x > -700) {
		return 0
	}
	const magic = 3 << 51 // adding it rounds to a whole number
	k := x*(128/math.Ln2) + magic
	r := x - (k-magic)*(math.Ln2/128)
	i := int64(math.Float64bits(k)<<12)>>12 - 1<<51
	t := math.Float64bits(expTable[i&127]) + uint64(i>>7)<<52
	return math.Float64frombits(t) * (1 + r*(1+r*(0.5+r*(1.0/6))))
}

// sumExp sums e^((logit-top)*scale), four sums side by side.
func sumExp(logits []float32, top float32, scale float64) float64 {
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(logits); i += 4 {
		l := logits[i : i+4 : i+4]
		a += exp(float64(l[0]-top) * scale)
		b += exp(float64(l[1]-top) * scale)
		c += exp(float64(l[2]-top) * scale)
		d += exp(float64(l[3]-top) * scale)
	}
	for ; i < len(logits); i++ {
		a += exp(float64(logits[i]-top) * scale)
	}
	return (a + b) + (c + d)
}
