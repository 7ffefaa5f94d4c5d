package codegen

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
)

var (
	update    = flag.Bool("update", false, "write the golden files")
	every     = flag.Bool("every", false, "look at the models of all weight types")
	offersDir = flag.String("offers", "", "also write the candidates of every site into this directory, to compare them")
)

// offersPath lists digests of what families offer at all sites of a model for a target.
const offersPath = "testdata/offers.txt"

// offered is a model compiled for a target as far as the choice of kernels.
type offered struct {
	shape synth.Shape
	on    *target.Target
	sites []*site             // one of each key
	all   []kernels.Candidate // that families offer at them, those that strategy drops, too
	// digests are those of modules, by moduleID: tests share them, but for those with -every.
	digests map[string][32]byte
}

// loaded are what tests share, by shape and target.
var loaded sync.Map

// eachOffer calls do for small models of some weight types and for targets that have each kind
// of kernel; with -every also of all weight types for sm_90. -short has a third of the models, by turns.
func eachOffer(t *testing.T, do func(o *offered) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range []string{"sm_90", "gfx1201", "gfx1201-nomatrix", "llvmpipe", "xe2"} {
		on, err := target.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range synth.Small() {
			at := slices.Index([]string{"small-dense-Q8_0", "small-experts-Q4_K_M", "small-delta"}, s.Name)
			if testing.Short() && at != (i+1)%3 {
				continue
			}
			if at < 0 && (!*every || name != "sm_90") {
				continue // sm_90 has kernels of all kinds but those of gemm_dot
			}
			group.Go(func() error {
				var o *offered
				if have, ok := loaded.Load(s.Name + name); ok {
					o = have.(*offered)
				} else {
					o = &offered{shape: s, on: on, digests: map[string][32]byte{}}
					if err := o.load(t.TempDir()); err != nil {
						return fmt.Errorf("%s for %s: %w", s.Name, name, err)
					}
					if !*every { // which would be too much to keep
						loaded.Store(s.Name+name, o)
					}
				}
				if err := do(o); err != nil {
					return fmt.Errorf("%s for %s: %w", s.Name, name, err)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// load compiles the model up to its sites.
func (o *offered) load(dir string) error {
	m, err := synth.New(o.shape)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "model.gguf")
	if err := m.WriteHeader(path); err != nil {
		return err
	}
	f, err := gguf.OpenHeader(path)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := frontend.Load(f, frontend.Options{KV: ir.F16, MaxRows: MaxRows})
	if err != nil {
		return err
	}
	table := Table(o.on, p.Funcs[0].Rows)
	at := slices.IndexFunc(table, func(p passes.Pass) bool { return p.Name == "SelectKernels" })
	table[at].Run = func(p *ir.Program) error {
		p.Target = o.on.Name
		all, err := sitesOf(p, o.on)
		seen := map[string]bool{}
		for _, s := range all {
			s.take(&s.candidates[0], "")
			if !seen[s.key] {
				o.sites = append(o.sites, s)
				o.all = append(o.all, kernels.Candidates(&kernels.Site{Program: p, Func: s.f, Group: s.g, Outputs: s.outputs, Target: o.on})...)
			}
			seen[s.key] = true
		}
		return err
	}
	_, err = passes.Run(p, table, passes.Options{StopAfter: ir.Specialize})
	return err
}

// moduleID names a candidate's module with the values of its constants.
func moduleID(c *kernels.Candidate) string { return fmt.Sprint(c.Kernel, c.Consts) }

// digest builds a candidate's kernel.
func (o *offered) digest(c *kernels.Candidate) (sum [32]byte, err error) {
	id := moduleID(c)
	if sum, ok := o.digests[id]; ok && !*every {
		return sum, nil
	}
	fn, err := c.Build()
	if err != nil {
		return sum, err
	}
	sum = sha256.Sum256([]byte(fn.String()))
	o.digests[id] = sum
	return sum, nil
}

// describe lists the sites with their candidates, each module with the digest of its code where
// it comes first.
func (o *offered) describe() (string, error) {
	var b strings.Builder
	built := map[string]bool{}
	for _, s := range o.sites {
		fmt.Fprintf(&b, "%s\n", s.key)
		for _, c := range s.candidates {
			fmt.Fprintf(&b, "\t%s %s %v %v %v\n", c.Name(), c.Kernel, c.Consts, c.Grid, c.Cover)
			if !built[c.Kernel] {
				built[c.Kernel] = true
				sum, err := o.digest(&c)
				if err != nil {
					return "", err
				}
				fmt.Fprintf(&b, "\t\t%x\n", sum)
			}
			for _, operand := range c.Operands {
				fmt.Fprintf(&b, "\t\t%s %v %v\n", operand.Name, operand.Access, operand.Value.Type)
			}
			if seconds, ok := strategy.Seconds(&c, o.on, s.f.Rows); ok {
				fmt.Fprintf(&b, "\t\t%g s\n", seconds)
			}
		}
	}
	return b.String(), nil
}

// TestOffers compares what families offer with testdata/offers.txt, which -every
// -update writes. -offers DIR writes it in full.
func TestOffers(t *testing.T) {
	lines := make(chan string, 1000)
	eachOffer(t, func(o *offered) error {
		text, err := o.describe()
		lines <- fmt.Sprintf("%x  %s %s\n", sha256.Sum256([]byte(text)), o.shape.Name, o.on.Name)
		if err == nil && *offersDir != "" {
			err = os.WriteFile(filepath.Join(*offersDir, o.shape.Name+" "+o.on.Name+".txt"), []byte(text), 0o666)
		}
		return err
	})
	close(lines)
	var have []string
	for line := range lines {
		have = append(have, line)
	}
	slices.SortFunc(have, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	if *update && *every {
		if err := os.WriteFile(offersPath, []byte(strings.Join(have, "")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(offersPath)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.SplitAfter(string(data), "\n")
	for _, line := range have {
		if !slices.Contains(want, line) {
			t.Errorf("%s: the candidates are not those of %s", strings.TrimSpace(line[64:]), offersPath)
		}
	}
	if *every && len(want) != len(have)+1 {
		t.Errorf("%s has %d lines, want %d", offersPath, len(want)-1, len(have))
	}
}

// TestModuleKeys builds the kernels of all that families offer at all sites: those with the same key
// must be the same, whatever the site, the model and the target. With -every it builds each
// at each site, else one of each model, target, key and values of constants.
func TestModuleKeys(t *testing.T) {
	var mu sync.Mutex
	digests, from, builds := map[string][32]byte{}, map[string]string{}, 0
	eachOffer(t, func(o *offered) error {
		seen := map[string]bool{}
		for _, c := range o.all {
			id := moduleID(&c)
			if seen[id] && !*every {
				continue
			}
			seen[id] = true
			sum, err := o.digest(&c)
			if err != nil {
				return err
			}
			where := fmt.Sprintf("%s for %s, constants %v", o.shape.Name, o.on.Name, c.Consts)
			mu.Lock()
			builds++
			if have, ok := digests[c.Kernel]; ok && have != sum {
				t.Errorf("key %q has two modules, at\n%s\nand\n%s", c.Kernel, from[c.Kernel], where)
			}
			digests[c.Kernel], from[c.Kernel] = sum, where
			mu.Unlock()
		}
		return nil
	})
	t.Logf("%d builds of %d modules", builds, len(digests))
}
