package kernels_test

import "testing"

func TestRowwise(t *testing.T) {
	for _, c := range []siteTest{
		{family: "elementwise", rows: 3, n: 2, globals: "step @a : f32[T, 1000]\nstep @b : f32[T, 1000]\n",
			group: "%0 = add @a, @b : io f32[T, 1000]"},
		{family: "elementwise", rows: 2, globals: "step @a : f32[T, 1030]\nstep @b : f32[T, 1030]\n",
			group: `%0 = glu @a, @b {act="silu"} : io f32[T, 1030]`},
		{family: "elementwise", rows: 1, globals: "step @a : f32[1, 33]\nstep @b : f32[1, 33]\n",
			group: `%0 = glu @a, @b {act="gelu"} : io f32[1, 33]`},
		{family: "elementwise", rows: 20, n: 13, globals: "step @a : f32[T, 96]\n",
			group: "%0 = last_row @a, @n : io f32[1, 96]"},
		{family: "elementwise", rows: 20, n: 13, globals: "step @a : i32[T]\n",
			group: "%0 = last_row @a, @n : io i32[1]"},
		{family: "rownorm", rows: 3, n: 2, globals: "step @a : f32[T, 2048]\nweight @w : f32[2048]\n",
			group: "%0 = rmsnorm @a, @w {eps=1e-05, group=2048} : io f32[T, 2048]"},
		{family: "rownorm", rows: 12, n: 10, globals: "step @a : f32[T, 99]\nweight @w : f32[33]\n",
			group: "%0 = rmsnorm @a, @w {eps=1e-05, group=33} : io f32[T, 99]"},
		{family: "rownorm", rows: 12, n: 10, globals: "step @a : f32[1, 8]\nweight @w : f32[8]\n",
			group: "%0 = rmsnorm @a, @w {eps=1e-05, group=8} : io f32[1, 8]"},
	} {
		c.ctx, c.slots = 64, 1
		c.run(t)
		c.checkBuild(t)
	}
}

const stepBlock = "step @token : i32[T]\nstep @out : i32[16]\nstep @count : i32[1]\n"

func TestArgmax(t *testing.T) {
	for _, c := range []siteTest{
		{rows: 1, globals: "step @x : f32[T, 40000]\n", group: "%0 = argmax @x : io i32[T]\nadvance %0, @token, @pos, @slot, @n, @out, @count"},
		{rows: 4, n: 3, globals: "step @x : f32[T, 5000]\n", group: "%0 = argmax @x : io i32[T]\nadvance %0, @token, @pos, @slot, @n, @out, @count"},
		{rows: 4, globals: "step @tied : f32[T, 5001]\n", group: "%0 = argmax @tied : i32[T]\nadvance %0, @token, @pos, @slot, @n, @out, @count"},
		{rows: 32, n: 30, slot: []int{2}, globals: "step @x : f32[1, 12]\n", group: "%0 = argmax @x : io i32[1]\nadvance %0, @token, @pos, @slot, @n, @out, @count"},
		{rows: 5, globals: "step @x : f32[T, 700]\n", group: "%0 = argmax @x : io i32[T]"},
		{rows: 5, globals: "step @x : i32[T]\n", group: "advance @x, @token, @pos, @slot, @n, @out, @count"},
		{rows: 16, globals: "step @x : i32[1]\n", group: "advance @x, @token, @pos, @slot, @n, @out, @count"},
	} {
		c.family, c.ctx, c.slots, c.pos = "argmax", 64, 4, []int{20}
		c.globals = stepBlock + c.globals
		c.run(t)
		c.checkBuild(t)
	}
}
