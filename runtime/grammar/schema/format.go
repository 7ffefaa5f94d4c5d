package schema

func readFormat(c *compiler, n *node, v *value, base *alt) error {
	return nil
}
