package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestSettings: the command line counts before variables, these before the file.
func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.toml")
	for _, c := range []struct {
		file, env, line, want, fails string
	}{
		{`port = 1`, "", "", "1 [] false []", ""},
		{`port = 1`, "T_PORT=2", "", "2 [] false []", ""},
		{`port = 1`, "T_PORT=2", "--port=3", "3 [] false []", ""},
		{"origin = [\"a\", \"b\"]\ndry-run = true\nmodels = [\"x\", \"y\"]", "", "", "8 [a,b] true [x y]", ""},
		{`models = ["x"]`, "T_ORIGIN=c,d T_DRY_RUN=1", "z", "8 [c,d] true [z]", ""},
		{`prot = 1`, "", "", "", "there is no flag --prot"},
		{`port = "a"`, "", "", "", "port"},
		{`port = [1, 2]`, "", "", "", "want one value"},
		{`port = {a = 1}`, "", "", "", "want a text"},
		{`port = `, "", "", "", "a.toml"},
		{``, "T_PORT=x", "", "", "the variable T_PORT"},
	} {
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(c.file+c.env, func(t *testing.T) {
			for v := range strings.FieldsSeq(c.env) {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			f := pflag.NewFlagSet("t", pflag.ContinueOnError)
			port := f.Int("port", 8, "")
			origins := f.StringArray("origin", nil, "")
			dry := f.Bool("dry-run", false, "")
			ConfigFlag(f)
			if err := f.Parse(append([]string{"--config", path}, strings.Fields(c.line)...)); err != nil {
				t.Fatal(err)
			}
			args, err := (&Program{Env: "T_"}).settings(f)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, want %s", err, c.fails)
				}
				return
			}
			if have := strings.TrimSpace(strings.Join([]string{f.Lookup("port").Value.String(), "[" + strings.Join(*origins, ",") + "]", f.Lookup("dry-run").Value.String(), "[" + strings.Join(args, " ") + "]"}, " ")); err != nil || have != c.want {
				t.Errorf("%s, %v, want %s (%d %v)", have, err, c.want, *port, *dry)
			}
		})
	}
}
