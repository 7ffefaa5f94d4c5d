package oracle

func headCut(c *call) error {
	x, y, a := c.arg(0), c.result(), c.op.Attrs
	stride, first, n := a.Int("stride"), a.Int("first"), a.Int("width")
	for h := range c.rows(0) * width(c.op.Result) / n {
		copy(y[h*n:(h+1)*n], x[h*stride+first:])
	}
	return nil
}

func headJoin(c *call) error {
	heads := c.op.Attrs.Int("heads")
	a, b, y, n, m := c.arg(0), c.arg(1), c.result(), width(c.op.Args[0])/heads, width(c.op.Args[1])/heads
	for h := range c.rows(0) * heads {
		out := y[h*(n+m):][:n+m]
		copy(out, a[h*n:(h+1)*n])
		copy(out[n:], b[h*m:])
	}
	return nil
}

func headIDs(c *call) error {
	y, heads := asInts(c.result()), c.op.Attrs.Int("heads")
	for i := range c.rows(0) * heads {
		y[i] = int32(i % heads)
	}
	return nil
}
