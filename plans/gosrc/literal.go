package gosrc

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/zincc-dev/zincc/ir"
)

// lines are the braces of a literal with a line for each of its parts.
var lines = jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}

// override gives the code of a field in place of its literal, or nil.
type override func(of reflect.Value, field string) jen.Code

// literal returns v as Go source. Fields that are zero are left out.
func literal(v reflect.Value, o override) *jen.Statement {
	switch v.Kind() {
	case reflect.Pointer:
		return jen.Op("&").Add(literal(v.Elem(), o))
	case reflect.Struct:
		return typeOf(v.Type()).Add(body(v, o))
	case reflect.Slice, reflect.Array:
		return typeOf(v.Type()).Add(body(v, o))
	case reflect.String:
		return jen.Lit(v.String())
	case reflect.Bool:
		return jen.Lit(v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		return jen.Id(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint32:
		return jen.Id(strconv.FormatUint(v.Uint(), 10))
	case reflect.Uint8:
		return jen.Qual(irPath, strings.ToUpper(ir.DType(v.Uint()).String()))
	case reflect.Float32:
		return float(float32(v.Float()))
	}
	panic(fmt.Sprintf("gosrc: no literal of %s", v.Type()))
}

func float(f float32) *jen.Statement {
	if f != f || math.IsInf(float64(f), 0) || f == 0 && math.Signbit(float64(f)) {
		return jen.Qual("math", "Float32frombits").Call(jen.Id(fmt.Sprintf("%#x", math.Float32bits(f))))
	}
	return jen.Id(strconv.FormatFloat(float64(f), 'g', -1, 32))
}

// body is the part of a composite literal in braces: on one line for numbers, for
// structs of them and for short lists of either.
func body(v reflect.Value, o override) *jen.Statement {
	options := jen.Options{Open: "{", Close: "}", Separator: ","}
	if long(v) {
		options = lines
	}
	return jen.CustomFunc(options, func(g *jen.Group) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				f, name := v.Field(i), v.Type().Field(i).Name
				if code := o(v, name); code != nil {
					g.Id(name).Op(":").Add(code)
				} else if !isZero(f) {
					g.Id(name).Op(":").Add(literal(f, o))
				}
			}
		default:
			for i := range v.Len() {
				if e := v.Index(i); e.Kind() == reflect.Struct {
					g.Add(body(e, o))
				} else {
					g.Add(literal(e, o))
				}
			}
		}
	})
}

// isZero reports whether v may be left out, for its encoding is that of the zero value:
// an empty slice's is, that of -0 is not.
func isZero(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !isZero(v.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Float32:
		return math.Float32bits(float32(v.Float())) == 0
	}
	return v.IsZero()
}

// long reports whether a literal is better read with a line for each part.
func long(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Slice && f.Len() > 0 && f.Type().Elem().Kind() == reflect.Struct {
				return true
			}
		}
		return v.Type().PkgPath() == plansPath && wide[v.Type().Name()]
	case reflect.Slice:
		return v.Len() > 1 && v.Type().Elem().Kind() == reflect.Struct
	}
	return false
}

// wide are the structs whose fields are sentences of their own.
var wide = map[string]bool{"Header": true, "Model": true, "Requirements": true, "VulkanRequirements": true, "Dispatch": true, "Entry": true}

func typeOf(t reflect.Type) *jen.Statement {
	switch t.Kind() {
	case reflect.Slice:
		return jen.Index().Add(typeOf(t.Elem()))
	case reflect.Array:
		return jen.Index(jen.Lit(t.Len())).Add(typeOf(t.Elem()))
	}
	if t.PkgPath() == "" {
		return jen.Id(t.Name())
	}
	return jen.Qual(t.PkgPath(), t.Name())
}
