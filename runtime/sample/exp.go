package sample

import "math"

// fractions holds 2^(i/128).
var fractions = func() (t [128]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 128)
	}
	return t
}()

// Below least, e^x is taken for e^least: 10^-304 of the largest.
const least = -700

// exp is e^x for x <= 0, to 1 in 10^11: 2^(k/128) with k whole, times the series of what is left, at
// most ln(2)/256. Adding 3*2^51 rounds to a whole number and leaves it in the low bits.
func exp(x float64) float64 {
	const magic = 3 << 51
	if x < least {
		x = least
	}
	k := x*(128/math.Ln2) + magic
	r := x - (k-magic)*(math.Ln2/128)
	i := math.Float64bits(k)
	return math.Float64frombits(math.Float64bits(fractions[i&127])+i>>7<<52) * (1 + r*(1+r*(0.5+r*(1.0/6))))
}

// sumExp sums e^((logit-top)*scale), two sums side by side.
func sumExp(logits []float32, top float32, scale float64) float64 {
	var a, b float64
	i := 0
	for ; i+2 <= len(logits); i += 2 {
		a += exp(float64(logits[i]-top) * scale)
		b += exp(float64(logits[i+1]-top) * scale)
	}
	if i < len(logits) {
		a += exp(float64(logits[i]-top) * scale)
	}
	return a + b
}
