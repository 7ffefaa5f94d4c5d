package engine_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/text"
)

// The pooling types of files.
const poolMean, poolLast = 1, 3

// vectorFile writes gopher as a model that makes vectors.
func vectorFile(t *testing.T, pooling uint32) string {
	t.Helper()
	f, err := gguf.Open("../../testdata/models/gopher-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var meta []gguf.KV
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		if meta = append(meta, gguf.KV{Key: key, Value: v}); key == "general.architecture" {
			meta = append(meta, gguf.KV{Key: v.(string) + ".pooling_type", Value: pooling})
		}
	}
	var tensors []gguf.TensorData
	for i := range f.Tensors {
		w := &f.Tensors[i]
		tensors = append(tensors, gguf.TensorData{Name: w.Name, Type: w.Type, Shape: w.Shape, Data: f.Data(w)})
	}
	path := filepath.Join(t.TempDir(), "vectors.gguf")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gguf.Write(out, meta, tensors), out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestVectors: whatever steps a text is read in, and whoever else asks, its vector has the same bits and length 1; that
// of the mean is made of those of its prefixes' last tokens.
func TestVectors(t *testing.T) {
	last, mean := vectorFile(t, poolLast), vectorFile(t, poolMean)
	o := frontend.Options{Ctx: 64, KV: ir.F16}
	var want [][]float32
	var texts [][]int32
	for _, path := range []string{last, mean} {
		whole := loadFile(t, path, o)
		narrow := o
		narrow.MaxRows = 8 // steps of 8 rows
		cut := loadFile(t, path, narrow)
		texts = [][]int32{
			whole.tok.Encode("package sort", text.EncodeOptions{}),
			whole.tok.Encode("// Search uses binary search to find and return the smallest index i in [0, n) at which f(i) is true", text.EncodeOptions{}),
		}
		if n := len(texts[1]); n <= 16 || n%8 == 0 {
			t.Fatalf("the text has %d tokens", n)
		}
		v, err := engine.NewVectors(whole.plan, whole.exec)
		if err != nil {
			t.Fatal(err)
		}
		if want, err = v.Embed(t.Context(), texts); err != nil {
			t.Fatal(err)
		}
		var all errgroup.Group
		for range 3 {
			all.Go(func() error {
				got, err := v.Embed(t.Context(), texts)
				if err == nil && !slices.EqualFunc(got, want, slices.Equal) {
					t.Error("vectors differ when several ask")
				}
				return err
			})
		}
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		sess := runtime.NewSession(cut.plan, cut.exec)
		for i, ids := range texts {
			got, err := sess.Embed(t.Context(), ids)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want[i]) {
				t.Errorf("text %d has another vector in steps of 8", i)
			}
			length := 0.0
			for _, x := range got {
				length += float64(x) * float64(x)
			}
			if math.Abs(length-1) > 1e-6 {
				t.Errorf("the square of the length is %g", length)
			}
		}
		if s := v.Stats(); s.PromptTokens != int64(4*(len(texts[0])+len(texts[1]))) || s.Requests[engine.Stopped] != 4 || s.Slots[0].State != "idle" {
			t.Errorf("stats are %+v", s)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if _, err := v.Embed(t.Context(), texts); err != engine.ErrClosed {
			t.Errorf("behind Close: %v", err)
		}
	}
	if vec, err := loadVector(t, last, o, texts[1][:1]); err != nil || !slices.Equal(vec, must(loadVector(t, mean, o, texts[1][:1]))) {
		t.Errorf("of one token, last and mean differ (%v)", err)
	}
}

func loadVector(t *testing.T, path string, o frontend.Options, ids []int32) ([]float32, error) {
	m := loadFile(t, path, o)
	return runtime.NewSession(m.plan, m.exec).Embed(t.Context(), ids)
}

func must(v []float32, err error) []float32 {
	if err != nil {
		panic(err)
	}
	return v
}

// TestVectorsEnd: what does not fit is refused, a drain waits or ends what runs, and models are told apart.
func TestVectorsEnd(t *testing.T) {
	m := loadFile(t, vectorFile(t, poolLast), frontend.Options{Ctx: 16, KV: ir.F16})
	if _, err := engine.New(m.plan, m.exec, m.tok, engine.Options{}); err != runtime.ErrVectors {
		t.Errorf("an engine: %v", err)
	}
	v, err := engine.NewVectors(m.plan, m.exec)
	if err != nil {
		t.Fatal(err)
	}
	var long *engine.ContextError
	if _, err := v.Embed(t.Context(), [][]int32{make([]int32, 17)}); !errors.As(err, &long) {
		t.Errorf("17 tokens: %v", err)
	}
	var none *engine.RequestError
	if _, err := v.Embed(t.Context(), [][]int32{{1}, {}}); !errors.As(err, &none) {
		t.Errorf("no tokens: %v", err)
	}
	for _, id := range []int32{-1, int32(m.plan.Header.Model.Vocab)} {
		if _, err := v.Embed(t.Context(), [][]int32{{id}}); !errors.As(err, &none) || v.Err() != nil {
			t.Errorf("token %d: %v, and the device: %v", id, err, v.Err())
		}
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := v.Embed(left, [][]int32{{1}}); err != context.Canceled {
		t.Errorf("a client that left: %v", err)
	}
	if s := v.Stats(); s.Requests[engine.Cancelled] != 1 || s.Requests[engine.Failed] != 0 {
		t.Errorf("requests are %v", s.Requests)
	}
	ended := make(chan error)
	go func() {
		_, err := v.Embed(t.Context(), slices.Repeat([][]int32{make([]int32, 16)}, 1<<16)) // for hours
		ended <- err
	}()
	for v.Stats().PromptTokens == 0 {
		time.Sleep(time.Millisecond)
	}
	now, stop := context.WithCancel(t.Context())
	stop()
	if err := v.Drain(now); err != context.Canceled {
		t.Errorf("the drain: %v", err)
	}
	if err := <-ended; err != engine.ErrClosed {
		t.Errorf("what ran: %v", err)
	}
	if _, err := v.Embed(t.Context(), [][]int32{{1}}); err != engine.ErrClosed {
		t.Errorf("behind a drain: %v", err)
	}
	chat := loadModel(t, "gopher", 64, 1)
	if _, err := engine.NewVectors(chat.plan, chat.exec); err != runtime.ErrNoVectors {
		t.Errorf("a model that predicts: %v", err)
	}
}
