package sass

import (
	"strings"
	"testing"
)

const add = `.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 a0)
{
	.reg .b32 %r<3>;
	.reg .b64 %d<1>;
	.reg .pred %p;
	ld.param.u64 %d0, [a0];
	ld.global.u32 %r0, [%d0];
L1:
	add.u32 %r0, %r0, 3;
	ld.global.u32 %r1, [%d0+8];
	setp.ne.u32 %p, %r1, %r0;
	@%p bra L1;
	st.global.u32 [%d0+4], %r0;
	ret;
}
`

func TestAssembly(t *testing.T) {
	tools, err := Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(tools.Version(), "ptxas 1") {
		t.Errorf("version %q", tools.Version())
	}
	texts, err := tools.All(t.Context(), []string{add, "", strings.Replace(add, "sm_90a", "sm_80", 1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 2} {
		for _, want := range []string{"\n  LDG.E ", "\n  STG.E ", "\n.L_x_", " BRA ", "\n  EXIT\n"} {
			if !strings.Contains(texts[i], want) {
				t.Errorf("module %d: no %q in\n%s", i, want, texts[i])
			}
		}
		if strings.Contains(texts[i], "/*") || strings.Contains(texts[i], ".section") {
			t.Errorf("module %d has more than instructions:\n%s", i, texts[i])
		}
	}
	if texts[1] != "" {
		t.Errorf("no module gives %q", texts[1])
	}
	for ptx, want := range map[string]string{strings.Replace(add, "add.u32", "plus.u32", 1): "ptxas: ", "ret;": "no .target"} {
		if _, err := tools.Assembly(t.Context(), ptx); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestNone(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Find(t.Context()); err != ErrNone {
		t.Error(err)
	}
}
