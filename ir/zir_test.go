package ir

import "testing"

// tiny is one attention layer's worth of every op kind.
const tiny = `zir 1
stage import
model arch="qwen3" name="tiny \"x\"" path="" source="" target="" ctx=64 slots=1 layers=1

weight @token_embd.weight : q8_0[32, 64]
weight @norm : f32[64]
weight @hn : f32[16]
weight @"odd name" : f16[64, 64]
weight @up : f32[64, 64]
weight @b : f32[64]
weight @sinks : f32[4]
table @rope {kind="rope", freqs=[1.0, 0.1, 0.01, 1e-05], mscale=1.0} : f32[L, 8]
kv @k : f16[1, L, 64]
kv @v : f16[1, L, 64]
step @token : i32[T]
step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
step @out : i32[16]
step @count : i32[1]
step @heads : i32[2]

func "forward" rows=8 sequences=many run=8 class=prompt part=4 {
  %0 = embed @token, @token_embd.weight {scale=1.0} : f32[T, 64]
  %1 = rmsnorm %0, @norm {eps=1e-06, group=64} : f32[T, 64]
  %2 = linear %1, @"odd name", @b : f32[T, 64]
  %3 = rmsnorm %2, @hn {eps=1e-06, group=16} : f32[T, 64]
  %4 = rope %3, @pos, @rope {kind="neox", head_dim=16, n_rot=8} : f32[T, 64]
  %23 = hadamard %4 {group=16} : f32[T, 64]
  kvwrite %4, @pos, @slot, @k
  kvwrite %2, @pos, @slot, @v
  %5 = attention %4, @k, @v, @pos, @slot {head_dim=16, heads=4, kv_heads=4, scale=0.25} : f32[T, 64]
  %6 = attention_split %4, @k, @v, @pos, @slot {head_dim=16, heads=4, kv_heads=4, scale=0.25, splits=2, block=8, rows=1} : f32[T, 144]
  %7 = attention_merge %6 {head_dim=16, heads=4, splits=2} : f32[T, 64]
  %8 = add %5, %7 : f32[T, 64]
  %9 = linear %8, @up : f32[T, 64]
  %10 = glu %8, %9 {act="silu"} : f32[T, 64]
  %11 = last_row %10, @n : f32[1, 64]
  %12 = linear %11, @token_embd.weight : io f32[1, 32]
  %13 = argmax %12 : io i32[1]
  %14 = argmax_split %12 {splits=4} : f32[1, 8]
  %15 = argmax_merge %14 {splits=4} : io i32[1]
  %16 = workspace %0 {width=32} : f32[T, 32]
  %22 = mul %0, %8 : f32[T, 64]
  %17 = scale %0 {factor=0.5} : f32[T, 64]
  %18 = softcap %17 {scale=1.0, cap=30.0} : f32[T, 64]
  %19 = rmsnorm %18 {eps=1e-06, group=64} : f32[T, 64]
  %20 = attention %19, @k, @v, @pos, @slot, @sinks {head_dim=16, heads=4, kv_heads=4, scale=0.25, window=8} : f32[T, 64]
  %21 = attention_merge %6, @sinks {head_dim=16, heads=4, splits=2} : f32[T, 64]
  %24 = candidates %12 : io i32[1, 576]
  %25 = take_rows %10, @heads {count=2} : f32[2, 64]
  advance %13, @token, @pos, @slot, @n, @out, @count
}
`

// hybrid is the rest of the op kinds.
const hybrid = `zir 1
stage import
model arch="qwen35moe" name="" path="" source="" target="" ctx=64 slots=1 layers=1

weight @w : f32[8, 16, 64]
weight @down : f32[8, 64, 16]
weight @router : f32[8, 64]
weight @one : f32[1, 64]
weight @conv : f32[64, 4]
weight @dt : f32[2]
weight @gain : f32[16]
weight @ab : f32[2, 64]
weight @ebias : f32[8]
weight @upbias : f32[8, 16]
state @ring : f32[1, 16, 64]
state @s : f32[1, 2, 16, 16]
state @ssm : f32[1, 2, 8, 16]
weight @cbias : f32[64]
weight @gains : f32[32]
weight @wide : f32[8, 256]
weight @broad : f32[256]
step @pos : i32[T]
step @slot : i32[T]
step @token : i32[T]

func "forward" rows=8 sequences=many run=8 class=prompt {
  %0 = embed @token, @one {scale=1.0} : f32[T, 64]
  %1 = linear %0, @router : f32[T, 8]
  %2 = topk %1 {k=2} : i32[T, 2]
  %3 = route %1, %2 {gating="softmax", norm=1, scale=1.0} : f32[T, 2]
  %27 = topk %1, @ebias {k=2, gating="sigmoid"} : i32[T, 2]
  %28 = route %1, %27, @ebias {gating="sigmoid", norm=1, scale=1.0} : f32[T, 2]
  %4 = expert_linear %0, @w, %2 {first=0, rows=16} : f32[T, 32]
  %29 = expert_bias %4, @upbias, %2 : f32[T, 32]
  %43 = expert_scale %4, @ebias, %2 : f32[T, 32]
  %20 = expert_order %2 : i32[T, 2]
  %21 = expert_offsets %2 {experts=8} : i32[9]
  %5 = expert_linear %4, @down, %2, %20, %21 {first=0, rows=64} : f32[T, 128]
  %6 = expert_sum %5, %3 : f32[T, 64]
  %23 = fixed12 %0 : f32[T, 64]
  %24 = fixed8 %0 : f32[T, 64]
  %44 = bfloat16 %0 : f32[T, 64]
  %7 = linear %23, @one : f32[T, 1]
  %8 = gate_rows %6, %7 : f32[T, 64]
  %9 = conv1d %8, @conv, @ring, @pos, @slot : f32[T, 64]
  %30 = conv1d %8, @conv, @ring, @pos, @slot {act="none"} : f32[T, 64]
  conv_write %8, @ring, @pos, @slot
  %10 = slice %9 {first=0, width=16} : f32[T, 16]
  %11 = l2norm %10 {eps=1e-06, group=16} : f32[T, 16]
  %12 = slice %9 {first=32, width=32} : f32[T, 32]
  %22 = half %0 : f16[T, 64]
  %13 = linear %22, @ab : f32[T, 2]
  %14 = decay %13, @dt, @dt : f32[T, 2]
  %15 = sigmoid %13 : f32[T, 2]
  %16 = deltanet %11, %10, %12, %14, %15, @s, @pos, @slot {head_dim=16, k_heads=1, v_heads=2, map="mod", scale=0.25} : f32[T, 32]
  %17 = gated_rmsnorm %16, @gain, %12 {eps=1e-06, group=16} : f32[T, 32]
  %18 = head_slice %9 {head_dim=16, parts=2, part=1} : f32[T, 32]
  %25 = delta_chunk %11, %10, %14, %15 {head_dim=16, k_heads=1, v_heads=2, map="mod", scale=0.25, eps=1e-06} : f32[T, 40]
  %26 = deltanet_chunked %11, %10, %17, %25, @s, @pos, @slot {head_dim=16, k_heads=1, v_heads=2, map="mod"} : f32[T, 32]
  %31 = head_cut %9 {stride=16, first=3, width=5} : f32[T, 20]
  %32 = head_join %31, %18 {heads=4} : f32[T, 52]
  %33 = head_ids @pos {heads=4} : i32[T, 4]
  %34 = conv1d %8, @conv, @ring, @pos, @slot, @cbias : f32[T, 64]
  %35 = ssd %34, %13, @dt, @dt, @dt, @ssm, @pos, @slot {heads=2, head_dim=16, groups=2, state_dim=8} : f32[T, 32]
  %36 = relu2 %35 : f32[T, 32]
  %38 = topk %1, @ebias {k=2, gating="sigmoid", groups=4, used_groups=2} : i32[T, 2]
  %37 = rmsnorm %36, @gains {eps=1e-06, group=16} : f32[T, 32]
  %39 = embed @token, @wide {scale=1.0} : f32[T, 256]
  %40 = half %39 : f16[T, 256]
  %41 = tile %40 {rows=128, lanes="13 12"} : f16[64, 1024]
  %42 = untile %41 {rows=128, lanes="13 12"} : f16[T, 256]
  %45 = squares %39 : f32[T, 2]
  %46 = pack12 %39, @broad {rows=32, columns=16, lanes="n-w aoh"} : i32[4, 2368]
  %47 = unpack12 %46 {rows=32, columns=16, lanes="n-w aoh"} : f32[T, 256]
  %48 = pack12 %39 {rows=64, columns=64, lanes="a--"} : i32[1, 9472]
  %49 = unpack12 %48 {rows=64, columns=64, lanes="a--"} : f32[T, 256]
  %50 = linear_parts %49, @wide {each=256} : f32[T, 8]
  %51 = add_parts %50, %45, @ebias {count=1, eps=1e-06} : f32[T, 8]
  %52 = add_parts %50 {count=2} : f32[T, 4]
  %19 = gate %18, %26 : io f32[T, 32]
}
`

const placed = `zir 1
stage place
model arch="" name="" path="" source="" target="host" ctx=64 slots=1 layers=0

weight @w : f32[64, 64] as raw
step @token : i32[T]

func "decode/1" rows=1 sequences=many run=1 class=exact {
  group "embed" stage=0 waits=0 {
    call "embed.f32/" kernel="embed.f32" wave=32 grid=[1, 1, 1] const={k=64, n=64} args=[@token, @w, %0] why="only candidate"
    %0 = embed @token, @w {scale=1.0} : f32[T, 64] at 0
  }
  group "a b" stage=1 waits=1 {
    call "copy/" kernel="copy" wave=0 grid=[2, 1, 1] const={} args=[%0, @w, %2, %1] room=512 ahead=4194304 after=2097152 overlap=loads loads=[0, 2] trigger=late why=""
    %2 = linear %0, @w : f32[T, 64] at 256
    %1 = add %2, %0 : io f32[T, 64]
  }
}
`

func TestPrintParse(t *testing.T) {
	for _, text := range []string{tiny, hybrid, placed} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Print(p); got != text {
			t.Errorf("prints back as\n%s", got)
		}
	}
}

func TestEveryOpKindParses(t *testing.T) {
	seen := map[string]bool{}
	for _, text := range []string{tiny, hybrid} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range p.Funcs[0].Ops() {
			seen[op.Kind.Name] = true
		}
	}
	for _, k := range OpKinds() {
		if !seen[k.Name] {
			t.Errorf("op %s is not in the test program", k.Name)
		}
		if k.Doc == "" || k.Infer == nil {
			t.Errorf("op %s: row of the op table is not complete", k.Name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(tiny)
	f.Add(hybrid)
	f.Add(placed)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		once := Print(p)
		q, err := Parse(once)
		if err != nil {
			t.Fatalf("printed program does not parse: %v\n%s", err, once)
		}
		if twice := Print(q); twice != once {
			t.Fatalf("not a fixed point:\n%s\n%s", once, twice)
		}
	})
}

// TestOpsAreWhole holds that a row of the op table leaves nothing to a default.
func TestOpsAreWhole(t *testing.T) {
	for _, k := range OpKinds() {
		if k.Doc == "" || len(k.Params) == 0 || k.Infer == nil || k.Flops == nil || k.Error == nil {
			t.Errorf("op %s: its row lacks doc, operands, Infer, Flops or Error", k.Name)
		}
		for _, i := range k.Writes {
			if i >= len(k.Params) {
				t.Errorf("op %s writes operand %d of %d", k.Name, i, len(k.Params))
			}
		}
	}
}

// TestErrors holds what verify tolerates of some ops against numbers by hand.
func TestErrors(t *testing.T) {
	row := func(n Dim) *Value { return &Value{Type: MakeType(F32, T, n)} }
	weight := &Value{Type: MakeType(Q4_K, 512, 256)}
	heads := Attrs{{"head_dim", int64(64)}}
	size := StepSize{Rows: 5, Sequences: 2, Positions: 80}
	for _, c := range []struct {
		op       string
		attrs    Attrs
		args     []*Value
		terms    int
		rounding float64
	}{
		{"linear", nil, []*Value{row(256), weight}, 256, 0},
		{"add", nil, []*Value{row(256), row(256)}, 0, 0},
		{"fixed12", nil, []*Value{row(256)}, 0, 1.0 / 2048},
		{"fixed8", nil, []*Value{row(256)}, 0, 1.0 / 128},
		{"bfloat16", nil, []*Value{row(256)}, 0, 1.0 / 32},
		{"rmsnorm", Attrs{{"eps", 1e-6}, {"group", int64(128)}}, nil, 128, 0},
		{"attention", heads, nil, 16 * (64 + 80), 0},
		{"deltanet", heads, nil, 64 + 16*5, 0},
		{"delta_chunk", heads, nil, 64 + 16*36, 0},
		{"deltanet_chunked", heads, nil, 64 + 5, 0},
	} {
		k := LookupOp(c.op)
		if terms, rounding := k.Error(&Op{Kind: k, Attrs: c.attrs, Args: c.args}, size); terms != c.terms || rounding != c.rounding {
			t.Errorf("%s: %d terms and a rounding of %g, want %d and %g", c.op, terms, rounding, c.terms, c.rounding)
		}
	}
}

// TestFlops counts the operations of some ops by hand: behind empty caches, and for each
// position that they hold.
func TestFlops(t *testing.T) {
	rows := &Value{Type: MakeType(F32, T, 256)}
	attrs := Attrs{{"head_dim", int64(64)}, {"heads", int64(4)}, {"k_heads", int64(2)}, {"v_heads", int64(4)}}
	size := StepSize{Rows: 10, Sequences: 2}
	for _, c := range []struct {
		op             string
		args           []*Value
		n, perPosition int64
	}{
		{"linear", []*Value{rows, {Type: MakeType(F32, 512, 256)}}, 2 * 10 * 512 * 256, 0},
		{"attention", []*Value{rows}, 4 * 4 * 64 * 2 * 15, 4 * 4 * 64 * 10}, // two sequences of 5 rows: 1 + 2 + 3 + 4 + 5 positions each
		{"deltanet", []*Value{rows, rows, rows}, 7 * 10 * 4 * 64 * 64, 0},
		{"delta_chunk", []*Value{rows}, 4 * 10 * 2 * 8 * 64, 0}, // two products of 64 with each of the 8 keys of a chunk
		{"add", []*Value{rows, rows}, 0, 0},
	} {
		k := LookupOp(c.op)
		if n, per := k.Flops(&Op{Kind: k, Attrs: attrs, Args: c.args}, size); n != c.n || per != c.perPosition {
			t.Errorf("%s: %d operations and %d a position, want %d and %d", c.op, n, per, c.n, c.perPosition)
		}
	}
}

// TestConsts writes constants as a program has them, and reads them back.
func TestConsts(t *testing.T) {
	for text, c := range map[string]Const{
		"k=4096":    {Name: "k", Value: 4096},
		"eps=1e-06": FloatConst("eps", 1e-6),
		"scale=1.0": FloatConst("scale", 1),
		"x=-0.5":    FloatConst("x", -0.5),
	} {
		if have := c.String(); have != text {
			t.Errorf("have %s, want %s", have, text)
		}
	}
}
