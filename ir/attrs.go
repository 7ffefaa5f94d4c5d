package ir

import (
	"fmt"
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
