package zincc

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
)

var update = flag.Bool("update", false, "write the tables of the code into docs")

// tables are the parts of the documents that repeat a table of the code. Each
// stands between <!-- NAME --> and <!-- end -->.
var tables = []struct {
	file, name string
	rows       func() []string
}{
	{"docs/ir.md", "ops", opRows},
	{"docs/ir.md", "dtypes", dtypeRows},
	{"docs/architecture.md", "passes", passRows},
	{"docs/architecture.md", "orders", orderRows},
	{"docs/plan-format.md", "rules", ruleRows},
}

func TestDocsHaveTheTablesOfTheCode(t *testing.T) {
	for _, table := range tables {
		data, err := os.ReadFile(table.file)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(data), "<!-- "+table.name+" -->\n")
		have, after, end := strings.Cut(rest, "<!-- end -->")
		if !ok || !end {
			t.Errorf("%s has no place for table %s", table.file, table.name)
			continue
		}
		want := strings.Join(table.rows(), "\n") + "\n"
		if have == want {
			continue
		}
		if !*update {
			t.Errorf("%s: table %s is not that of the code; go test . -update writes it", table.file, table.name)
			continue
		}
		text := before + "<!-- " + table.name + " -->\n" + want + "<!-- end -->" + after
		if err := os.WriteFile(table.file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func row(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

func header(cells ...string) []string {
	return []string{row(cells...), "|" + strings.Repeat("---|", len(cells))}
}

func opRows() []string {
	rows := header("op", "operands", "attributes", "writes", "what it computes")
	for _, k := range ir.OpKinds() {
		params, attrs, writes := []string{}, []string{}, []string{}
		for i, p := range k.Params {
			if i >= len(k.Params)-k.Optional {
				p = "[" + p + "]"
			}
			params = append(params, p)
		}
		for _, a := range k.Attrs {
			attrs = append(attrs, a.Name)
		}
		for _, i := range k.Writes {
			writes = append(writes, k.Params[i])
		}
		rows = append(rows, row("`"+k.Name+"`", strings.Join(params, ", "), strings.Join(attrs, ", "), strings.Join(writes, ", "), k.Doc))
	}
	return rows
}

func dtypeRows() []string {
	rows := header("dtype", "elements of a block", "bytes of a block")
	for _, d := range ir.DTypes() {
		rows = append(rows, row("`"+d.String()+"`", fmt.Sprint(d.Block()), fmt.Sprint(d.BlockBytes())))
	}
	return rows
}

func passRows() []string {
	rows := header("pass", "stage", "what it does")
	for _, p := range codegen.Table(target.All()[0], codegen.MaxRows) {
		rows = append(rows, row(p.Name, p.Stage.String(), p.Doc))
	}
	return rows
}

func orderRows() []string {
	rows := header("before", "after", "because")
	for _, o := range passes.Orders {
		rows = append(rows, row(o.Before, o.After, o.Reason))
	}
	return rows
}

func ruleRows() []string {
	rows := header("rule", "what it proves")
	for _, r := range plans.Rules() {
		rows = append(rows, row(r.Name, r.Doc))
	}
	return rows
}

var link = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)

// TestLinks follows the links of the documents to files of the repository.
func TestLinks(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "README.md", "CONTRIBUTING.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: link: %v", file, err)
			}
		}
	}
}
