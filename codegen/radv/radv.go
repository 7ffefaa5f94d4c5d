// Package radv asks AMD's compiler what it makes of a kernel, with no AMD GPU in
// the computer: Mesa's Vulkan driver RADV compiles for a device without hardware
// and tells registers, spills and cycles of every pipeline.
//
// The driver lives in child processes, which are this program executed again (see
// Main): the environment that makes such a device stays there, as do crashes and
// what the driver prints.
package radv

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/plans"
)

// ErrNoDriver says that this computer has no RADV that compiles without
// hardware: Mesa is missing, too old for the device, or newer than 25, which
// dropped the device.
var ErrNoDriver = errors.New("no RADV that compiles without hardware")

// Kernel is what the compiler gets.
type Kernel struct {
	Name   string // for errors
	Words  []uint32
	Consts map[uint32]uint32 // specialization constants by id
	Wave   int               // subgroup size
	Full   bool              // the workgroup is a multiple of the subgroup
}

// Figures are what the compiler tells of a kernel. Registers are those of one
// lane; counts are of instructions in the code, cycles are of one subgroup, with
// every loop taken as eight iterations.
type Figures struct {
	SGPRs      int
	VGPRs      int // allocated, rounded to what bounds the occupancy
	Pressure   int // VGPRs that are alive at once, before scheduling
	SGPRSpills int
	VGPRSpills int
	Scratch    int // bytes a lane
	LDS        int // bytes of shared memory of a workgroup
	Code       int // bytes

	Instructions, VALU, SALU, VMEM, SMEM int

	Latency int // cycles until the subgroup ends, alone on its SIMD
	// InverseThroughput is the cycles for which 64 lanes keep their SIMD busy: two subgroups of 32 (see Busy).
	InverseThroughput int
}

// throughputLanes is the lanes that the driver's inverse throughput is of, whatever the subgroup (wave64_per_cycle in
// Mesa's aco_statistics.cpp).
const throughputLanes = 64

// Busy is the cycles for which a subgroup of so many lanes keeps its SIMD busy.
func (f *Figures) Busy(wave int) float64 {
	return float64(f.InverseThroughput) * float64(wave) / throughputLanes
}

// Result are the figures of a kernel, or why the driver did not compile it.
type Result struct {
	Figures
	Refused string
	Driver  string // that said so: name and version
	StandIn string // the family it was compiled for, if not the one asked about
	Known   bool   // false where there is no driver to ask
}

// Compiler compiles for one GPU family. Its methods may be called from several
// goroutines.
type Compiler struct {
	family  string
	driver  string // name and version; empty if there is none
	has     plans.VulkanCapabilities
	standIn func() (*Compiler, error) // nil if there is none
	cache   cache
	known   Known
	asking  func(done, total int) // nil: nobody looks

	mu     sync.Mutex
	idle   []*process
	others []*Compiler // to close
}

// Open starts the driver for a family, one of RADV's names such as GFX1201. If the
// driver lacks a feature for it that a kernel uses, such as cooperative matrices,
// the kernel is compiled for the family standIn; empty for none. What is known is not
// asked again. Without a driver the compiler answers that alone; the error is ErrNoDriver
// if it is nothing.
func Open(ctx context.Context, family, standIn string, known Known) (*Compiler, error) {
	p, err := start(ctx, family)
	if errors.Is(err, ErrNoDriver) && len(known) > 0 {
		return &Compiler{family: family, known: known}, nil
	}
	if err != nil {
		return nil, err
	}
	c := &Compiler{family: family, driver: p.driver, has: p.has, cache: newCache(family, p.driver), known: known, idle: []*process{p}}
	if standIn != "" {
		c.standIn = sync.OnceValues(func() (*Compiler, error) {
			other, err := Open(ctx, standIn, "", nil)
			if err == nil {
				c.mu.Lock()
				c.others = append(c.others, other)
				c.mu.Unlock()
			}
			return other, err
		})
	}
	return c, nil
}

// Has is what the driver has for the family.
func (c *Compiler) Has() plans.VulkanCapabilities { return c.has }

// Driver is the driver's name and version, empty if there is none.
func (c *Compiler) Driver() string { return c.driver }

// Asking calls progress, from several goroutines, with how many questions of a call of Compile are answered.
func (c *Compiler) Asking(progress func(done, total int)) { c.asking = progress }

// Close ends the children.
func (c *Compiler) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.idle {
		p.stop()
	}
	for _, other := range c.others {
		other.Close()
	}
	c.idle, c.others = nil, nil
}

// Compile returns a result for each kernel; without a driver not all are known. A kernel that the driver refuses, or
// dies of, is a result; that the driver cannot be run any more is an error.
func (c *Compiler) Compile(ctx context.Context, kernels []Kernel) ([]Result, error) {
	results := make([]Result, len(kernels))
	same := map[key][]int{} // kernels that are not in the cache
	var missing []key
	for i := range kernels {
		k := kernels[i].key()
		r, ok := c.known[k]
		if !ok && c.driver != "" {
			r, ok = c.cache.get(k)
		}
		if ok || c.driver == "" {
			results[i] = r
			continue
		}
		if same[k] == nil {
			missing = append(missing, k)
		}
		same[k] = append(same[k], i)
	}
	// The longest first, so that no processor waits long for another at the end.
	slices.SortStableFunc(missing, func(a, b key) int { return len(kernels[same[b][0]].Words) - len(kernels[same[a][0]].Words) })
	answered := atomic.Int64{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, k := range missing {
		group.Go(func() error {
			r, err := c.ask(ctx, &kernels[same[k][0]])
			if err != nil {
				return err
			}
			r.Driver, r.Known = c.driver, true
			// On disk are results for the family itself, whatever stands in for it.
			c.cache.put(k, r, r.StandIn == "" && c.takes(&kernels[same[k][0]]))
			for _, i := range same[k] {
				results[i] = r
			}
			if done := answered.Add(1); c.asking != nil {
				c.asking(int(done), len(missing))
			}
			return nil
		})
	}
	return results, group.Wait()
}

// ask compiles a kernel for the family or, if the driver cannot, for its stand-in.
func (c *Compiler) ask(ctx context.Context, k *Kernel) (Result, error) {
	if c.takes(k) {
		a, err := c.compile(ctx, k, wantFigures)
		return a.Result, err
	}
	if c.standIn == nil {
		return Result{Refused: "the driver has no cooperative matrices for " + c.family}, nil
	}
	other, err := c.standIn()
	if err != nil {
		return Result{}, err
	}
	r, err := other.Compile(ctx, []Kernel{*k})
	if err != nil {
		return Result{}, err
	}
	r[0].StandIn = other.family
	return r[0], nil
}

// takes reports whether the driver has what k uses, among the features that it has
// for some families only: cooperative matrices.
func (c *Compiler) takes(k *Kernel) bool {
	const header, opCapability, cooperativeMatrix = 5, 17, 6022
	for i := header; i+1 < len(k.Words) && k.Words[i]&0xffff == opCapability; i += 2 {
		if k.Words[i+1] == cooperativeMatrix {
			return c.has.Features["cooperativeMatrix"]
		}
	}
	return true
}

func (c *Compiler) compile(ctx context.Context, k *Kernel, what want) (answer, error) {
	p, err := c.take(ctx)
	if err != nil {
		return answer{}, err
	}
	a, err := p.compile(ctx, k, what)
	if err != nil {
		p.stop()
		if ctx.Err() != nil {
			return answer{}, ctx.Err()
		}
		// A child that ends in the middle has met a fault of its compiler.
		return answer{Result: Result{Refused: fmt.Sprintf("the driver failed: %s", p.lastWords(err))}}, nil
	}
	c.mu.Lock()
	c.idle = append(c.idle, p)
	c.mu.Unlock()
	return a, nil
}

// take returns an idle child or a new one.
func (c *Compiler) take(ctx context.Context) (*process, error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		p := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return p, nil
	}
	c.mu.Unlock()
	return start(ctx, c.family)
}
