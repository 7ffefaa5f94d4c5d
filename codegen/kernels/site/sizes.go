package site

// MaxGrid is the smallest limit of a grid's axis among the devices we know.
const MaxGrid = 65535

// Widest returns the elements, 4, 2 or 1, of an access that divides width.
func Widest(width int) int {
	for _, v := range []int{4, 2} {
		if width%v == 0 {
			return v
		}
	}
	return 1
}

func CeilDiv(a, b int) int { return (a + b - 1) / b }

// Log2 returns the logarithm of a power of two.
func Log2(n int) int {
	k := 0
	for ; n > 1; n /= 2 {
		k++
	}
	return k
}
