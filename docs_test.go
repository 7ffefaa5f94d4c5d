package zincc_test

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
	"github.com/zincc-dev/zincc/plans/audit"
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
	{"docs/testing.md", "badplans", badPlanRows},
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

func badPlanRows() []string {
	rows := header("bad plan", "refused by rule")
	for _, c := range badPlans {
		rows = append(rows, row(c.name, c.rule))
	}
	return rows
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
			name := a.Name
			if a.Optional {
				name = "[" + name + "]"
			}
			attrs = append(attrs, name)
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
	rows := header("earlier pass", "later pass", "because")
	for _, o := range passes.Orders {
		rows = append(rows, row(o.Before, o.After, o.Reason))
	}
	return rows
}

func ruleRows() []string {
	rows := header("rule", "what it proves")
	for _, r := range append(audit.Rules(), codegen.ReproducedRule) {
		rows = append(rows, row(r.Name, r.Doc))
	}
	return rows
}

var (
	link    = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile("[^a-z0-9 _-]")
)

// anchors are the names under which a document's headings are linked to.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		found["#"+strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}

// TestLinks follows the links of the documents to files of the repository and
// to headings of other documents.
func TestLinks(t *testing.T) {
	files := []string{"README.md", "CONTRIBUTING.md"}
	for _, glob := range []string{"docs/*.md", "docs/backends/*.md", "docs/lab/*.md"} {
		found, err := filepath.Glob(glob)
		if err != nil || len(found) == 0 {
			t.Fatal(glob, found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := file
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(file), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link: %v", file, err)
				continue
			}
			if m[2] == "" || filepath.Ext(to) != ".md" {
				continue
			}
			text, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(string(text))[m[2]] {
				t.Errorf("%s: link: %s has no heading %s", file, to, m[2])
			}
		}
	}
}

// TestBenchmarksStayShort holds the tables to a few pages: what was tried is in docs/lab.
func TestBenchmarksStayShort(t *testing.T) {
	data, err := os.ReadFile("docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n > 190 {
		t.Errorf("docs/benchmarks.md has %d lines, at most 190 are wanted", n)
	}
}

// TestLabStaysShort holds docs/lab to answers: logs and superseded figures are in history.
func TestLabStaysShort(t *testing.T) {
	pages, err := filepath.Glob("docs/lab/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	lines := 0
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(data), "\n")
	}
	if lines > 900 {
		t.Errorf("docs/lab has %d lines, at most 900 are wanted", lines)
	}
}
