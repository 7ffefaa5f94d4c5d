package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/spf13/pflag"
)

// configFlag names a file of settings. Its keys are the names of the command's flags, and models for the arguments.
const configFlag = "config"

// ConfigFlag declares the flag that names a file with values of the other flags.
func ConfigFlag(f *pflag.FlagSet) {
	f.String(configFlag, "", "TOML file of flags, such as port = 8081, and models = [\"DIR\"]; what the command line says counts before")
}

// settings sets the flags that the command line leaves out: from variables, PREFIX_NAME, then from the file that
// --config names. It returns the arguments, which may come from the file.
func (p *Program) settings(f *pflag.FlagSet) ([]string, error) {
	args := f.Args()
	var problem error
	f.VisitAll(func(flag *pflag.Flag) {
		name := variable(p.Env, flag.Name)
		text, ok := os.LookupEnv(name)
		if p.Env == "" || !ok || flag.Changed || problem != nil {
			return
		}
		values := []string{text}
		if repeats(flag) {
			values = strings.Split(text, ",")
		}
		problem = set(f, flag, values, "the variable "+name)
	})
	file := f.Lookup(configFlag)
	if problem != nil || file == nil || file.Value.String() == "" {
		return args, problem
	}
	path := file.Value.String()
	var keys map[string]any
	if _, err := toml.DecodeFile(path, &keys); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for name, value := range keys {
		values, err := settingOf(value)
		if err != nil {
			return nil, Usagef("%s: %s: %s", path, name, err)
		}
		flag := f.Lookup(name)
		switch {
		case name == "models" && flag == nil:
			if len(args) == 0 {
				args = values
			}
		case flag == nil || name == configFlag:
			return nil, Usagef("%s: there is no flag --%s", path, name)
		case len(values) != 1 && !repeats(flag):
			return nil, Usagef("%s: %s: want one value, have %d", path, name, len(values))
		case !flag.Changed:
			if err := set(f, flag, values, path+": "+name); err != nil {
				return nil, err
			}
		}
	}
	return args, nil
}

// variable is the name of the variable for a flag.
func variable(prefix, flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func repeats(flag *pflag.Flag) bool { return flag.Value.Type() == "stringArray" }

func set(f *pflag.FlagSet, flag *pflag.Flag, values []string, where string) error {
	for _, v := range values {
		if err := f.Set(flag.Name, v); err != nil {
			return Usagef("%s: %s", where, err)
		}
	}
	return nil
}

// settingOf returns a value of a file as flags are written.
func settingOf(value any) ([]string, error) {
	switch v := value.(type) {
	case string, bool, int64, float64:
		return []string{fmt.Sprint(v)}, nil
	case []any:
		var all []string
		for _, one := range v {
			texts, err := settingOf(one)
			if err != nil || len(texts) != 1 {
				return nil, fmt.Errorf("want texts, numbers or booleans")
			}
			all = append(all, texts...)
		}
		return all, nil
	}
	return nil, fmt.Errorf("want a text, a number, a boolean, or a list of them")
}
