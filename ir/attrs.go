package ir

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Attrs are the named compile-time arguments of an op, in the order of its row
// in the op table. A value is an int64, float64, string or []float64.
type Attrs []Attr

// Attr is one attribute.
type Attr struct {
	Name  string
	Value any
}

// Int returns the integer attribute name, or 0.
func (a Attrs) Int(name string) int { v, _ := a.get(name).(int64); return int(v) }

// Float returns the float attribute name, or 0.
func (a Attrs) Float(name string) float64 { v, _ := a.get(name).(float64); return v }

// Str returns the string attribute name, or "".
func (a Attrs) Str(name string) string { v, _ := a.get(name).(string); return v }

// Floats returns the list attribute name, or nil.
func (a Attrs) Floats(name string) []float64 { v, _ := a.get(name).([]float64); return v }

// Finite reports whether f is neither an infinity nor a NaN.
func Finite(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }

// checkFinite fails if a number is none that a formula can use, or .zir text can hold.
func (a Attrs) checkFinite() error {
	for _, x := range a {
		list, _ := x.Value.([]float64)
		if f, ok := x.Value.(float64); ok {
			list = []float64{f}
		}
		for _, f := range list {
			if !Finite(f) {
				return fmt.Errorf("attribute %s is %g", x.Name, f)
			}
		}
	}
	return nil
}

func (a Attrs) get(name string) any {
	for _, x := range a {
		if x.Name == name {
			return x.Value
		}
	}
	return nil
}

func (a Attrs) String() string {
	if len(a) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(" {")
	for i, x := range a {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(x.Name)
		b.WriteByte('=')
		b.WriteString(formatAttr(x.Value))
	}
	b.WriteByte('}')
	return b.String()
}

func formatAttr(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatFloat(v)
	case string:
		return strconv.Quote(v)
	case []float64:
		s := make([]string, len(v))
		for i, f := range v {
			s[i] = formatFloat(f)
		}
		return "[" + strings.Join(s, ", ") + "]"
	}
	panic(fmt.Sprintf("ir: attribute of type %T", v))
}

// formatFloat always shows a point or an exponent, so that the text says which
// numbers are floats.
func formatFloat(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".einI") {
		s += ".0"
	}
	return s
}
