package kerneltest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/rdna"
	"github.com/zincc-dev/zincc/ir"
)

// everything makes the emulated GPUs run every kernel that their targets may choose, once, whatever its size.
var everything = flag.Bool("emulate", false, "emulate every kernel of AMD's targets")

// gpu is one of AMD's, whose machine code is executed without it. Code is the driver's compiler's for the device.
type gpu struct {
	device
	once     sync.Once
	emu      *emulate.Device
	err      error
	ran      sync.Map // kernels that everything has run
	families sync.Map // of candidates that tests have launched
}

// gpus are emulated; the two others of the table have the instructions of these, and everything runs them, too.
var gpus = []*gpu{newGPU("gfx1201"), newGPU("gfx1100"), newGPU("gfx1200"), newGPU("gfx1151")}

// sampled are how many of them take part where not everything is emulated.
const sampled = 2

func newGPU(name string) *gpu {
	g := &gpu{}
	g.name, g.open, g.fits, g.run = name, g.with, g.has, g.compute
	g.most, g.mostShort = 1500, 250
	return g
}

// with closes what the tests have opened.
func (g *gpu) with(run func() (int, error)) (int, error) {
	code, err := run()
	if g.emu != nil {
		g.emu.Close()
	}
	return code, err
}

// has reports whether the GPU stands in the table for others: where everything is emulated, with the kernel's subgroups
// and without matrices. A sample runs its own candidates alone, since bits may differ between devices: see Emulated.
func (g *gpu) has(c kernels.Candidate, f *kernel.Func) bool {
	matrices := false
	f.Body().Walk(func(n *kernel.Node) { matrices = matrices || n.Op() == kernel.OpMatMulAdd })
	return *everything && (c.Wave == 32 || c.Wave == 64) && !f.Fragments && !matrices
}

// opened is the GPU, with the driver's compiler for it.
func (g *gpu) opened(t testing.TB) *emulate.Device {
	t.Helper()
	g.once.Do(func() { g.emu, g.err = emulate.Open(context.Background(), g.name) })
	if g.err != nil {
		t.Fatalf("%s: %v", g.name, g.err)
	}
	return g.emu
}

// compute runs a module. What waits or barriers leave open fails the test.
func (g *gpu) compute(l *launchOf, args [][]byte) {
	l.t.Helper()
	size, err := l.f.WorkgroupSize(l.spec)
	if err != nil {
		l.t.Fatal(err)
	}
	launch := rdna.Launch{Grid: l.c.Grid, Workgroup: int(size), Ahead: l.f.LoadsAhead()}
	buffers := map[*byte]*rdna.Buffer{}
	for i, a := range args {
		b := buffers[unsafe.SliceData(a)]
		if b == nil {
			b = &rdna.Buffer{Name: l.f.Args[i].Name, Data: a}
			buffers[unsafe.SliceData(a)] = b
		}
		b.Writable = b.Writable || l.f.Args[i].Access&kernel.Write != 0
		launch.Args = append(launch.Args, b)
	}
	k := radv.Kernel{Name: l.c.Kernel, Words: l.module, Consts: l.spec, Wave: l.c.Wave, Full: int(size)%l.c.Wave == 0}
	_, err = g.opened(l.t).Run(l.t.Context(), &k, launch)
	if err != nil && !errors.Is(err, emulate.ErrNoCode) {
		l.t.Fatalf("%s: %v", g.name, err)
	}
}

// Emulated returns what runs candidates of an AMD target on its GPU: those that show it something, or all. Of others,
// and of those that the driver makes no code of, there are no results.
func Emulated(on *target.Target) (Launcher, bool) {
	for i, g := range gpus {
		if g.name == on.Name && (i < sampled || *everything) {
			return g.launch, true
		}
	}
	return nil, false
}

// never are the families of which no plan for AMD has a kernel, by what they need that no target of AMD has.
var never = map[string]string{
	"gemm_wide":       "products of four subgroups",
	"pack12":          "gemm_wide, which reads what it packs",
	"add_parts":       "gemm_wide, whose parts it adds",
	"gemm_wgmma":      "products of four subgroups",
	"attention_wgmma": "products of four subgroups",
	"tile":            "gemm_wgmma, which reads tiles",
	"gemm_fixed":      "fragments of matrices, whose lanes are known",
	"gemm_fragment":   "fragments of matrices, whose lanes are known",
	"expert_fragment": "fragments of matrices, whose lanes are known",
	"expert_wide":     "fragments of matrices, whose lanes are known",
	"expert_weigh":    "expert_wide, whose sums it weighs",
	"delta_tf32x3":    "matrices of TF32",
	"horizontal":      "workgroups of a dispatch that begin before the one before it ends",
}

// matrices are families whose kernels multiply matrices. A sample runs each of these kernels once, whatever its size:
// no smaller one shows a path with matrices.
var matrices = []string{"gemm_coop", "expert_coop"}

// codeless reports whether the driver makes no code of a family for the GPU of AMD's target: without hardware, it has
// matrices of the stand-in alone.
func codeless(on *target.Target, family string) bool {
	return on.AMD.StandIn != "" && slices.Contains(matrices, family)
}

// missing returns an error if the tests of a package, all of which have run in its folder, launched no kernel of one of
// its families on an emulated GPU. A family is a file of its name.
func missing() (err error) {
	for i, g := range gpus {
		if i >= sampled && !*everything {
			continue
		}
		on, failed := target.Lookup(g.name)
		if failed != nil {
			return failed
		}
		for f := range kernels.Families(on) {
			if _, err := os.Stat(f.Name + ".go"); err != nil {
				continue // of another package
			}
			why, is := never[f.Name]
			switch _, launched := g.families.Load(f.Name); {
			case launched && is:
				err = errors.Join(err, fmt.Errorf("%s: a test launched a kernel of %s, which needs %s", g.name, f.Name, why))
			case launched && codeless(on, f.Name):
				err = errors.Join(err, fmt.Errorf("%s: a kernel of %s ran, of which the driver is said to make no code", g.name, f.Name))
			case !launched && !is && !codeless(on, f.Name):
				err = errors.Join(err, fmt.Errorf("%s: no test launched a kernel of %s: see kerneltest.Emulated", g.name, f.Name))
			}
		}
	}
	return err
}

func (g *gpu) launch(t testing.TB, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	if !slices.Contains(matrices, c.Family) { // these count where they have run
		g.families.Store(c.Family, true)
	}
	l := newLaunch(t, c)
	if !g.takes(l) {
		return nil
	}
	size, err := l.f.WorkgroupSize(l.spec)
	if err != nil {
		t.Fatal(err)
	}
	k := radv.Kernel{Name: c.Kernel, Words: l.module, Consts: l.spec, Wave: c.Wave, Full: int(size)%c.Wave == 0}
	if _, _, err := g.opened(t).Code(t.Context(), &k); errors.Is(err, emulate.ErrNoCode) {
		return nil
	}
	values, args := l.buffers(sizes, data)
	g.compute(l, args)
	g.families.Store(c.Family, true)
	return values
}

// takes reports whether the GPU runs a candidate of its own.
func (g *gpu) takes(l *launchOf) bool {
	if *everything || slices.Contains(matrices, l.c.Family) {
		_, had := g.ran.LoadOrStore(fmt.Sprint(l.c.Kernel, l.c.Wave), true)
		return !had
	}
	return g.shows(l.c, l.f)
}
