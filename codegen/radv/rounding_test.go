package radv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// halves is a kernel that rounds to f16 in both ways that kernels have.
func halves(t *testing.T) Kernel {
	t.Helper()
	f, err := kernel.Build("halves", func(b *kernel.Builder) {
		x := b.Arg("x", kernel.Read)
		y := b.Arg("y", kernel.Write)
		b.Workgroup(64)
		pair := b.PackHalf(x.Load(kernel.F32.Vec(2), b.LocalID()))
		y.Store(b.LocalID(), b.FMAHalf(pair, pair, pair))
	})
	if err != nil {
		t.Fatal(err)
	}
	words, err := kernelspirv.Lower(f)
	if err != nil {
		t.Fatal(err)
	}
	return Kernel{Name: "halves", Words: words, Wave: 32, Full: true}
}

// TestRounding: AMD's compiler rounds to f16 to nearest, by its instructions and by the mode that waves start in.
func TestRounding(t *testing.T) {
	const modeVariable = "ZINC_RADV_FLOAT_MODE"
	k := halves(t)
	if os.Getenv(modeVariable) != "" {
		mode, err := floatMode(&k)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("float mode %#x\n", mode)
		return
	}
	icd, err := manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []string{"GFX1201", "NAVI31"} {
		texts, err := open(t, family).Assembly(t.Context(), []Kernel{k})
		if err != nil {
			t.Fatal(err)
		}
		if code := texts[0]; !strings.Contains(code, "v_cvt_f16_f32") || strings.Contains(code, "rtz") {
			t.Errorf("%s rounds to f16 by other instructions:\n%s", family, code)
		}
		child := exec.Command(os.Args[0], "-test.run=^TestRounding$")
		child.Env = append(os.Environ(), modeVariable+"=1", familyVariable+"="+family, "VK_DRIVER_FILES="+icd,
			"MESA_SHADER_CACHE_DISABLE=true", "XDG_CACHE_HOME="+os.DevNull)
		out, err := child.Output()
		// Bits 2 and 3 are how f16 and f64 are rounded, 0 to nearest even; bits 6 and 7 keep their denormals, 4 and 5 those of f32.
		if err != nil || !strings.Contains(string(out), "float mode 0xc0\n") {
			t.Errorf("%s: %v, %s", family, err, out)
		}
	}
}

// floatMode returns what the driver for a device without hardware says of the mode that the waves of a kernel start in. It keeps
// code only of pipelines that nobody wants figures of.
func floatMode(k *Kernel) (uint32, error) {
	all, err := vulkan.Enumerate()
	if err != nil {
		return 0, err
	}
	need := vulkan.ProbeRequirements()
	need.Features = append(need.Features, "shaderFloat16", kernel.RoundsHalf)
	d, err := vulkan.Open(all[0].Index, need)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if _, err := d.CreatePipelines([]vulkan.PipelineInfo{{Name: k.Name, Words: k.Words, SubgroupSize: k.Wave, FullSubgroups: k.Full}}); err != nil {
		return 0, err
	}
	var words []uint32
	for data := d.PipelineData(); len(data) >= 4; data = data[4:] {
		words = append(words, binary.LittleEndian.Uint32(data))
	}
	// The mode, the bytes of scratch memory, and the first register that describes the kernel, which has the mode, too.
	for i := 0; i+2 < len(words); i++ {
		if mode := words[i]; mode != 0 && mode < 256 && words[i+2]>>12&0xff == mode {
			return mode, nil
		}
	}
	return 0, errors.Join(io.ErrUnexpectedEOF, fmt.Errorf("%d words without a mode", len(words)))
}
