package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// wants are what values of flags are called, by the type that help gives them.
var wants = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number of 0 or more", "float64": "a number", "bool": "true or false",
	"duration": "a time such as 30s or 5m",
}

// flagProblem says for people what is wrong with the flags.
func flagProblem(f *pflag.FlagSet, err error) string {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		if near := Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return fmt.Sprintf("%s; did you mean --%s?", err, near)
		}
	case errors.As(err, &invalid):
		flag := invalid.GetFlag()
		why := invalid.Unwrap().Error()
		if want := wants[flag.Value.Type()]; want != "" {
			why = "want " + want
			if errors.Is(invalid, strconv.ErrRange) {
				why += " that is not as large"
			}
		}
		return fmt.Sprintf("--%s: %s, have %q", flag.Name, why, invalid.GetValue())
	}
	return err.Error()
}
